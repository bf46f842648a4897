"""`winnow up`."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from winnow import signals
from winnow.address import Address
from winnow.bundle import read_manifest
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.hints import FrontDemands, ask_lines, feed_line, http_line, predict_line
from winnow.cli.local.ports import expect_free, free_ports
from winnow.cli.local.settings import UpSettings
from winnow.cli.local.supervision import ClusterSupervisor, RestartLimit
from winnow.heads.store import open_store
from winnow.index_directory import shard_directories
from winnow.quoting import many
from winnow.settings import settings_command
from winnow.settings.common import LogFormat
from winnow.settings.names import variable
from winnow.settings.source import SettingsError, configured_value
from winnow.telemetry import stderr
from winnow.telemetry.logqueue import LogQueue

_CHECK_SECONDS = 0.5
_MOST_WAITING = 100
_PATIENCE = 1.0
"""Seconds to write the last messages."""
_OFF = {"false", "off", "no", "f", "n", "0"}
"""Values of a variable that pydantic reads as false."""


def run(settings: UpSettings) -> None:
    """Starts the cluster and serves until Ctrl-C or SIGTERM."""
    read_manifest(settings.bundle)  # else every process would report that the bundle is missing
    if settings.heads:
        open_store(settings.heads).encoder()  # else a wrong name would show at the first request
    _expect_a_node_each(settings)
    at_terminal = sys.stderr is not None and sys.stderr.isatty()
    heads = ("--heads", settings.heads) if settings.heads else ()
    plan = LocalPlan(
        settings.index,
        settings.bundle,
        settings.listen,
        settings.metrics_listen,
        one_process=not settings.nodes,
        replicas=settings.replicas,
        front=(*log_flags("front", settings.file, at_terminal), *heads),
        node=log_flags("node", settings.file, at_terminal),
        feed_listen=settings.feed_listen,
        http_listen=settings.http,
        node_metrics_from=_node_metrics(settings),
        health_listen=health(settings.file),
        config=settings.file,
        show_logs=True,
    )
    with _messages() as say:
        # Ctrl-C is how a cluster is ended, ready or not
        with contextlib.suppress(KeyboardInterrupt), LocalCluster(plan) as cluster:
            _expect_free(settings)
            cluster.start()
            supervisor = ClusterSupervisor(cluster, RestartLimit(time.monotonic), say)
            signals.run(cluster.wait_ready(supervisor.check_at_start))
            for number, address in enumerate(cluster.node_metrics):
                say(f"metrics of node {number} on {address}")
            demands = front_demands(settings.file)
            say(f"ready on {cluster.address}; try:\n{ask_lines(cluster.address, demands)}")
            if settings.heads:
                say(predict_line(cluster.address, demands))
            if cluster.http:
                say(http_line(cluster.http, demands))
            if cluster.feed:
                say(feed_line(cluster.feed, demands))
            serve_until_stopped(supervisor)
        say("stopped")


@contextlib.contextmanager
def _messages() -> Iterator[Callable[[str], None]]:
    """Gives a function that writes a message to standard error, and neither waits nor fails.

    Standard error may be full, closed, or read by nobody. The cluster goes on all the same.
    """
    messages = LogQueue(stderr.open_writer(), _MOST_WAITING)
    try:
        yield messages.put
    finally:
        messages.close(_PATIENCE)


def log_flags(
    table: str,
    file: Path | None,
    at_terminal: bool,
    environment: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Flags for text logs at a terminal, unless the user has set the format."""
    chosen = configured_value(table, "log_format", file, environment)
    return ("--log-format", LogFormat.TEXT.value) if at_terminal and chosen is None else ()


def _expect_a_node_each(settings: UpSettings) -> None:
    """Raises SettingsError unless there are as many content nodes as shards, or none."""
    shards = len(shard_directories(settings.index))
    if settings.nodes not in (0, shards):
        raise SettingsError(
            f"--nodes {settings.nodes}: a content node serves one shard, and {settings.index} has "
            f"{many(shards, 'shard')}: --nodes {shards}, or none for one process"
        )


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
    """The address of the first node's metrics, from the nodes' settings.

    The other nodes get the next ports: the setting is one address, and each needs its own.
    """
    listen = configured_value("node", "metrics_listen", settings.file)
    try:
        return str(Address.parse(str(listen))) if listen else ""
    except ValueError as error:
        place = f"metrics_listen of [node] (or {variable('node', 'metrics_listen')})"
        raise SettingsError(f"{place}: {error}") from error


def health(file: Path | None) -> str:
    """The address for health checks in plain text of a front node that serves over TLS.

    Empty without TLS: health is then served where the front node answers.
    """
    if not configured_value("front", "tls_cert", file):
        return ""
    return str(configured_value("front", "health_listen", file) or f"127.0.0.1:{free_ports(1)[0]}")


def front_demands(file: Path | None, environment: Mapping[str, str] | None = None) -> FrontDemands:
    """What the front node demands of its callers, from its settings."""

    def is_set(name: str) -> bool:
        return bool(configured_value("front", name, file, environment))

    pages = configured_value("front", "http_pages", file, environment)
    return FrontDemands(
        tls=is_set("tls_cert"),
        certificates=is_set("tls_client_ca"),
        keys=is_set("keys"),
        pages=pages is None or str(pages).lower() not in _OFF,
    )


def serve_until_stopped(supervisor: ClusterSupervisor) -> None:
    """Restarts processes that end, until Ctrl-C or SIGTERM. The others answer meanwhile.

    Raises UnavailableError if the front node, or every content node, was given up.
    """

    async def watch() -> None:
        while True:
            supervisor.check()
            await asyncio.sleep(_CHECK_SECONDS)

    with contextlib.suppress(KeyboardInterrupt):
        signals.run(watch())


up = settings_command(UpSettings, run)
