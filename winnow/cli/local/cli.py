"""`winnow up`."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from winnow import signals
from winnow.address import Address
from winnow.bundle import read_manifest
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.keeping import Keeping
from winnow.cli.local.ports import expect_free, free_ports
from winnow.cli.local.restarts import Restarts
from winnow.cli.local.saying import saying
from winnow.cli.local.settings import UpSettings
from winnow.cli.local.trying import Door, feed_line, http_line, predict_line, try_line
from winnow.heads.store import open_store
from winnow.settings import settings_command
from winnow.settings.common import LogFormat
from winnow.settings.names import variable
from winnow.settings.source import SettingsError, given

_LOOK_SECONDS = 0.5
_OFF = {"false", "off", "no", "f", "n", "0"}
"""How a variable says no; as pydantic reads it."""


def run(settings: UpSettings) -> None:
    """Starts the cluster and serves until Ctrl-C or SIGTERM."""
    read_manifest(settings.bundle)  # else every process would say that there is none
    if settings.heads:
        open_store(settings.heads).encoder()  # else a slip in its name shows at the first request
    at_terminal = sys.stderr is not None and sys.stderr.isatty()
    plan = LocalPlan(
        settings.index,
        settings.bundle,
        settings.listen,
        settings.metrics_listen,
        replicas=settings.replicas,
        front=(
            *log_flags("front", settings.file, at_terminal),
            *(("--heads", settings.heads) if settings.heads else ()),
        ),
        node=log_flags("node", settings.file, at_terminal),
        feed_listen=settings.feed_listen,
        http_listen=settings.http,
        node_metrics_from=_node_metrics(settings),
        health_listen=health(settings.file),
        config=settings.file,
        show_logs=True,
    )
    with saying() as say:
        # Ctrl-C is how a cluster is ended, ready or not
        with contextlib.suppress(KeyboardInterrupt), LocalCluster(plan) as cluster:
            _expect_free(settings)
            cluster.start()
            keeping = Keeping(cluster, Restarts(time.monotonic), say)
            signals.run(cluster.wait_ready(keep=keeping.look_at_start))
            for number, address in enumerate(cluster.node_metrics):
                say(f"metrics of node {number} on {address}")
            entered = door(settings.file)
            say(f"ready on {cluster.address}; try:\n{try_line(cluster.address, entered)}")
            if settings.heads:
                say(predict_line(cluster.address, entered))
            if cluster.http:
                say(http_line(cluster.http, entered))
            if cluster.feed:
                say(feed_line(cluster.feed, entered))
            serve_until_stopped(keeping)
        say("stopped")


def log_flags(
    table: str,
    file: Path | None,
    at_terminal: bool,
    environment: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Whoever reads logs at a terminal is no program; unless the user says how they are to look."""
    chosen = given(table, "log_format", file, environment)
    return ("--log-format", LogFormat.TEXT.value) if at_terminal and chosen is None else ()


def _expect_free(settings: UpSettings) -> None:
    """Raises UnavailableError if an address is in use; names the flag that chooses another one."""
    for flag, listen in (
        ("--listen", settings.listen),
        ("--feed-listen", settings.feed_listen),
        ("--http-listen", settings.http),
        ("--metrics-listen", settings.metrics_listen),
    ):
        if listen:
            expect_free([Address.parse(listen)], flag)


def _node_metrics(settings: UpSettings) -> str:
    """Where the first node's metrics are to be; the same address for all would be one too few."""
    listen = given("node", "metrics_listen", settings.file)
    try:
        return str(Address.parse(str(listen))) if listen else ""
    except ValueError as error:
        place = f"metrics_listen of [node] (or {variable('node', 'metrics_listen')})"
        raise SettingsError(f"{place}: {error}") from error


def health(file: Path | None) -> str:
    """Where a front that serves over TLS is asked for its health in plain text; empty for others:
    they are asked where they answer.
    """
    if not given("front", "tls_cert", file):
        return ""
    return str(given("front", "health_listen", file) or f"127.0.0.1:{free_ports(1)[0]}")


def door(file: Path | None, environment: Mapping[str, str] | None = None) -> Door:
    """What the front asks of those who call it."""

    def says(name: str) -> str:
        return str(given("front", name, file, environment) or "")

    pages = given("front", "http_pages", file, environment)
    return Door(
        tls=bool(says("tls_cert")),
        certificates=bool(says("tls_client_ca")),
        keys=bool(says("keys")),
        pages=pages is None or str(pages).lower() not in _OFF,
    )


def serve_until_stopped(keeping: Keeping) -> None:
    """Waits for Ctrl-C or SIGTERM. What ends by itself is started again: until then, and where that
    does not help, the others answer from what is left.

    Raises:
        UnavailableError: the front, or every node, ended again and again.

    """
    with contextlib.suppress(KeyboardInterrupt):
        signals.run(_watch(keeping))


async def _watch(keeping: Keeping) -> None:
    while True:
        keeping.look()
        await asyncio.sleep(_LOOK_SECONDS)


up = settings_command(UpSettings, run)
