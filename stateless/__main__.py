"""Composes a front node from its parts, and runs it."""

from functools import partial

from prometheus_client import CollectorRegistry

from winnow.rpc import process
from winnow.stateless.composing.front import open_front
from winnow.stateless.composing.nodes import RemoteNodes
from winnow.stateless.composing.serving import serve_front
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer


def run(settings: FrontSettings) -> None:
    """Answers questions until SIGTERM or SIGINT."""
    process.run(settings, partial(_run, settings))


async def _run(
    settings: FrontSettings, registry: CollectorRegistry, tracer: Tracer = NO_TRACER
) -> None:
    async with open_front(settings, registry, tracer) as front:
        await serve_front(front, RemoteNodes(front) if settings.serves_answers else None)
