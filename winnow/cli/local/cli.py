"""`winnow up`."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

from winnow import signals
from winnow.address import Address
from winnow.bundle import read_manifest
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.documents import ServedFolder
from winnow.cli.local.hints import FrontRequirements, ask_lines, feed_line, http_line, predict_line
from winnow.cli.local.ports import free_ports, require_free
from winnow.cli.local.settings import UpSettings, configured_address
from winnow.cli.local.supervision import ClusterSupervisor, RestartLimit
from winnow.heads.store import open_store
from winnow.index_directory import shard_directories
from winnow.quoting import many
from winnow.settings.command import settings_command
from winnow.settings.common import LogFormat
from winnow.settings.errors import SettingsError
from winnow.settings.names import variable
from winnow.settings.source import configured_value
from winnow.telemetry import stderr
from winnow.telemetry.logqueue import LogQueue

_CHECK_SECONDS = 0.5
_MAX_QUEUED_MESSAGES = 100
_FLUSH_SECONDS = 10.0
"""Maximum seconds to write the last messages."""
_FALSE = {"false", "off", "no", "f", "n", "0"}
"""Values of a variable that pydantic parses as false."""


def run(settings: UpSettings) -> None:
    """Starts the cluster, and serves until Ctrl-C or SIGTERM."""
    _check_http_feed(settings)
    folder = None if settings.documents is None else ServedFolder(settings.documents, settings)
    read_manifest(settings.bundle)  # report a missing bundle once, instead of in every process
    if settings.heads:
        open_store(settings.heads).encoder()  # report a wrong URL now, not at the first request
    if folder is not None:
        _require_free(settings)
        folder.build_if_missing()
    _expect_shards_for_nodes(settings)
    _expect_own_health_addresses(settings)
    at_terminal = sys.stderr is not None and sys.stderr.isatty()
    heads = ("--heads", settings.heads) if settings.heads else ()
    http_feed = ("--http-feed",) if settings.http_feed else ()
    plan = LocalPlan(
        settings.directory,
        settings.bundle,
        settings.listen,
        settings.metrics_listen,
        one_process=not settings.nodes,
        nodes=settings.nodes,
        replicas=settings.replicas,
        front=(*log_flags("front", settings.file, at_terminal), *heads, *http_feed),
        node=log_flags("node", settings.file, at_terminal),
        feed_listen=settings.feed,
        http_listen=settings.http,
        first_node_metrics=settings.first_node_metrics,
        health_listen=health_address(settings.file),
        config=settings.file,
        show_logs=True,
    )
    with _message_writer() as say:
        # Ctrl-C ends a cluster at any time
        with contextlib.suppress(KeyboardInterrupt), LocalCluster(plan) as cluster:
            _require_free(settings)
            cluster.start()
            supervisor = ClusterSupervisor(cluster, RestartLimit(time.monotonic), say)
            signals.run(cluster.wait_ready(supervisor.check_at_start, say))
            for number, address in enumerate(cluster.node_metrics):
                say(f"metrics of node {number} on {address}")
            requirements = front_requirements(settings.file)
            say(f"ready on {cluster.address}; try:\n{ask_lines(cluster.address, requirements)}")
            if settings.heads:
                say(predict_line(cluster.address, requirements))
            if cluster.http:
                say(http_line(cluster.http, requirements))
            if settings.feed_listen:
                say(feed_line(cluster.feed, requirements))
            follow = None if folder is None else folder.follow(cluster.feed, requirements, say)
            serve_until_stopped(supervisor, follow)
        say("stopped")


@contextlib.contextmanager
def _message_writer() -> Iterator[Callable[[str], None]]:
    """Yields a function that writes a message to standard error, and neither blocks nor fails.

    So the cluster keeps serving if standard error is a full or closed pipe.
    """
    messages = LogQueue(stderr.open_writer(), _MAX_QUEUED_MESSAGES)
    try:
        yield messages.put
    finally:
        messages.close(_FLUSH_SECONDS)


def log_flags(
    table: str, file: Path | None, at_terminal: bool, environment: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Flags for text logs at a terminal, unless the log format is set."""
    log_format = configured_value(table, "log_format", file, environment)
    return ("--log-format", LogFormat.TEXT.value) if at_terminal and log_format is None else ()


def _expect_shards_for_nodes(settings: UpSettings) -> None:
    """Raises SettingsError if there are more content nodes than shards."""
    shards = len(shard_directories(settings.directory))
    if settings.nodes > shards:
        raise SettingsError(
            f"--nodes {settings.nodes}: {settings.directory} has {many(shards, 'shard')}, so some "
            f"nodes would have none: use at most --nodes {shards}"
        )


def _expect_own_health_addresses(settings: UpSettings) -> None:
    """Raises SettingsError if several content nodes would listen on one port for health checks."""
    listen = configured_address("node", "health_listen", settings.file)
    count = settings.nodes * settings.replicas
    if count > 1 and listen and Address.parse(listen).port:
        raise SettingsError(
            f"health_listen of [node] (or {variable('node', 'health_listen')}): {count} content "
            f"nodes cannot all listen on {listen}: leave it out, or use one content node"
        )


def _check_http_feed(settings: UpSettings) -> None:
    """Raises SettingsError if callers without a key could change the index from other machines."""
    is_local = Address.parse(settings.http_listen).loopback if settings.http_feed else True
    if not is_local and not front_requirements(settings.file).keys:
        raise SettingsError(
            f"--http-feed: everyone who can reach {settings.http_listen} could change the index: "
            f"set {variable('front', 'keys')}, or listen on 127.0.0.1"
        )


def _require_free(settings: UpSettings) -> None:
    """Raises UnavailableError if an address is in use. The message names the flag that sets it."""
    flags = {
        "--listen": settings.listen,
        "--feed-listen": settings.feed_listen,
        "--http-listen": settings.http,
        "--metrics-listen": settings.metrics_listen,
    }
    require_free(*((Address.parse(listen), flag) for flag, listen in flags.items() if listen))


def health_address(file: Path | None) -> str:
    """The address for plain-text health checks of a front node with TLS.

    Empty without TLS, because the main port then serves health checks.
    """
    if not configured_value("front", "tls_cert", file):
        return ""
    listen = configured_address("front", "health_listen", file)
    return listen or f"127.0.0.1:{free_ports(1)[0]}"


def front_requirements(
    file: Path | None, environment: Mapping[str, str] | None = None
) -> FrontRequirements:
    """What the front node requires of its callers, from its settings."""

    def is_set(name: str) -> bool:
        return bool(configured_value("front", name, file, environment))

    pages = configured_value("front", "http_pages", file, environment)
    return FrontRequirements(
        tls=is_set("tls_cert"),
        certificates=is_set("tls_client_ca"),
        keys=is_set("keys"),
        pages=pages is None or str(pages).lower() not in _FALSE,
    )


def serve_until_stopped(
    supervisor: ClusterSupervisor, background: Coroutine[Any, Any, None] | None = None
) -> None:
    """Restarts processes that end, until Ctrl-C or SIGTERM. Runs `background` meanwhile.

    Raises UnavailableError if the front node or all content nodes were given up.
    """

    async def watch() -> None:
        task = None if background is None else asyncio.create_task(background)
        try:
            while True:
                supervisor.restart_ended_processes()
                await asyncio.sleep(_CHECK_SECONDS)
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    with contextlib.suppress(KeyboardInterrupt):
        signals.run(watch())


up = settings_command(UpSettings, run)
