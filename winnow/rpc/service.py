"""The life cycle of a serving process: start, become ready, serve, leave, drain, end.

Knows signals and the metrics endpoint; does not know the services.
"""

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog
from prometheus_client import CollectorRegistry

from winnow.address import Address
from winnow.errors import NotLoadedError, UnavailableError
from winnow.signals import on_signals
from winnow.telemetry.endpoint import MetricsEndpoint, register_process_metrics

_log = structlog.get_logger("winnow.service")


class AnyServer(Protocol):
    """A gRPC or HTTP server on one port."""

    async def start(self, address: str) -> int:
        """Listens on HOST:PORT, at first not ready; returns the port.

        Raises UnavailableError if the address cannot be bound.
        """

    async def set_serving(self, ready: bool) -> None:
        """Sets whether the server reports itself ready."""

    async def drain(self, grace: float) -> None:
        """Stops accepting calls; running calls get up to `grace` seconds."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A server, and the HOST:PORT on which it listens."""

    server: AnyServer
    listen: str


async def serve(
    server: AnyServer,
    listen: str,
    prepare: Callable[[], Awaitable[None]],
    *,
    linger: float,
    grace: float,
    on_leave: Callable[[], None] = lambda: None,
    extra_listeners: Sequence[Listener] = (),
) -> None:
    """Serves until SIGTERM or SIGINT.

    Listens as NOT_SERVING, awaits `prepare` (load, verify, warm up), and then reports SERVING. If
    `prepare` fails, the server stops, and the error is raised. If it fails with NotLoadedError, the
    process instead stays NOT_SERVING, because a restart would not help and callers can see why.

    At the first signal, calls `on_leave` and reports NOT_SERVING. Continues serving for `linger`
    seconds or until a second signal, so that callers can move to other nodes. Then accepts no new
    calls, and gives running calls `grace` seconds to finish. Ignores later signals.

    `extra_listeners` start and end together with `server`.
    """
    listeners = [Listener(server, listen), *extra_listeners]
    signals = asyncio.Semaphore(0)
    on_signals(asyncio.get_running_loop(), signals.release)
    await _start_shielded(listeners)
    waiting = asyncio.create_task(signals.acquire())
    ready = asyncio.create_task(_become_ready(listeners, prepare))
    try:
        await asyncio.wait({waiting, ready}, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            was_ready = ready.result()
            await waiting
            on_leave()
            if was_ready:
                await _linger(listeners, signals, linger)
        _log.info("draining", grace=grace)
    finally:
        ready.cancel()
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await ready
        await asyncio.gather(*(listener.server.drain(grace) for listener in listeners))
    _log.info("stopped")


def serve_metrics(listen: str, registry: CollectorRegistry) -> None:
    """Serves the metrics of `registry` and of the process for Prometheus.

    `listen` is HOST:PORT; empty serves nothing.

    Raises UnavailableError if the address cannot be bound.
    """
    if not listen:
        return
    address = Address.parse(listen)
    register_process_metrics(registry)
    try:
        port = MetricsEndpoint(registry).start(address.host, address.port)
    except OSError as error:
        raise UnavailableError(f"cannot serve metrics on {listen}: {error}") from error
    _log.info("serving metrics", listen=listen, port=port)


async def _start_shielded(listeners: Sequence[Listener]) -> None:
    """Starts all servers or none, even if an early signal cancels the task.

    The start is shielded, because gRPC reports a fault if its start is cancelled.
    """
    starting = asyncio.create_task(_start_all(listeners))
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await starting
        await asyncio.gather(*(listener.server.drain(0) for listener in listeners))
        raise


async def _start_all(listeners: Sequence[Listener]) -> None:
    """Starts all servers. If one cannot start, stops the others."""
    started: list[AnyServer] = []
    try:
        for listener in listeners:
            port = await listener.server.start(listener.listen)
            started.append(listener.server)
            _log.info("listening", listen=listener.listen, port=port)
    except BaseException:
        for server in started:
            await server.drain(0)
        raise


async def _set_serving(listeners: Sequence[Listener], ready: bool) -> None:
    for listener in listeners:
        await listener.server.set_serving(ready)


async def _become_ready(
    listeners: Sequence[Listener], prepare: Callable[[], Awaitable[None]]
) -> bool:
    try:
        await prepare()
    except NotLoadedError as error:
        _log.error("startup failed; the node stays NOT_SERVING", error=str(error))
        return False
    # loaded objects stay; collecting garbage among them took 0.1 s on a busy machine
    gc.collect()
    gc.freeze()
    await _set_serving(listeners, ready=True)
    _log.info("ready")
    return True


async def _linger(
    listeners: Sequence[Listener], signals: asyncio.Semaphore, seconds: float
) -> None:
    """Continues serving as NOT_SERVING for `seconds`, or until another signal."""
    _log.info("leaving", linger=seconds)
    await _set_serving(listeners, ready=False)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await signals.acquire()
