"""Runs a front that does nothing but read texts of callers."""

from functools import partial

from prometheus_client import CollectorRegistry

from winnow.rpc import process
from winnow.stateless.composing.front import open_front
from winnow.stateless.composing.serving import serve_front
from winnow.stateless.reading.server_settings import ReaderSettings
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer


def run(settings: ReaderSettings) -> None:
    """Reads texts until SIGTERM or SIGINT."""
    process.run(settings, partial(_run, settings.front))


async def _run(
    settings: FrontSettings, registry: CollectorRegistry, tracer: Tracer = NO_TRACER
) -> None:
    async with open_front(settings, registry, tracer) as front:
        await serve_front(front, None)
