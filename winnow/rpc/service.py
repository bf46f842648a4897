"""The life of a serving process: start, become ready, serve, leave, drain, end.

Knows signals and the metrics endpoint; what is served is handed in.
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
from winnow.telemetry.endpoint import MetricsEndpoint, describe_process

_log = structlog.get_logger("winnow.service")


class AnyServer(Protocol):
    """A server on one port, by gRPC or by HTTP."""

    async def start(self, address: str) -> int:
        """Listens on HOST:PORT, not ready; returns the port. Raises UnavailableError if the address
        cannot be bound.
        """

    async def set_serving(self, ready: bool) -> None:
        """Sets whether it is ready."""

    async def drain(self, grace: float) -> None:
        """Takes no new calls, and gives those in hand up to `grace` seconds."""


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
    leave: Callable[[], None] = lambda: None,
    further: Sequence[Listener] = (),
) -> None:
    """Serves until SIGTERM or SIGINT.

    Listens at once but NOT_SERVING, awaits `prepare` (load, verify, warm up), then SERVING. If
    `prepare` fails, the error is raised after the server has stopped. A NotLoadedError is the
    exception: a restart would not help, so the process stays NOT_SERVING and tells callers why.

    At the end it calls `leave` and reports NOT_SERVING. It serves on for `linger` seconds or until
    a second signal, so that callers move elsewhere. Then it takes no new calls, and gives those in
    hand `grace` seconds. Later signals change nothing.

    `further` servers begin and end with it.
    """
    every = [Listener(server, listen), *further]
    signals = asyncio.Semaphore(0)
    on_signals(asyncio.get_running_loop(), signals.release)
    await _started(every)
    waiting = asyncio.create_task(signals.acquire())
    ready = asyncio.create_task(_become_ready(every, prepare))
    try:
        await asyncio.wait({waiting, ready}, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            was_ready = ready.result()
            await waiting
            leave()
            if was_ready:
                await _linger(every, signals, linger)
        _log.info("draining", grace=grace)
    finally:
        ready.cancel()
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await ready
        await asyncio.gather(*(each.server.drain(grace) for each in every))
    _log.info("stopped")


def serve_metrics(listen: str, registry: CollectorRegistry) -> None:
    """Serves Prometheus metrics, those of the process included, at HOST:PORT unless it is empty.

    Raises UnavailableError if the address cannot be bound.
    """
    if not listen:
        return
    address = Address.parse(listen)
    describe_process(registry)
    try:
        port = MetricsEndpoint(registry).start(address.host, address.port)
    except OSError as error:
        raise UnavailableError(f"cannot serve metrics on {listen}: {error}") from error
    _log.info("serving metrics", listen=listen, port=port)


async def _started(every: Sequence[Listener]) -> None:
    """Starts all servers, or none.

    A signal that came before may cancel this, which gRPC would take for a fault while it starts.
    """
    starting = asyncio.create_task(_start(every))
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await starting
        await asyncio.gather(*(each.server.drain(0) for each in every))
        raise


async def _start(every: Sequence[Listener]) -> None:
    """Starts all servers, or none."""
    started: list[AnyServer] = []
    try:
        for each in every:
            port = await each.server.start(each.listen)
            started.append(each.server)
            _log.info("listening", listen=each.listen, port=port)
    except BaseException:
        for server in started:
            await server.drain(0)
        raise


async def _say(every: Sequence[Listener], ready: bool) -> None:
    for each in every:
        await each.server.set_serving(ready)


async def _become_ready(every: Sequence[Listener], prepare: Callable[[], Awaitable[None]]) -> bool:
    try:
        await prepare()
    except NotLoadedError as error:
        _log.error("startup failed; the node stays NOT_SERVING", error=str(error))
        return False
    # loaded objects stay; searching them for garbage took a tenth of a second on a busy machine
    gc.collect()
    gc.freeze()
    await _say(every, ready=True)
    _log.info("ready")
    return True


async def _linger(every: Sequence[Listener], signals: asyncio.Semaphore, seconds: float) -> None:
    """Serves on as NOT_SERVING for `seconds`, or until another signal."""
    _log.info("leaving", linger=seconds)
    await _say(every, ready=False)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await signals.acquire()
