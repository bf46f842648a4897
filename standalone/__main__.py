"""Runs a front node and all shards of an index in one process."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from winnow.content_node.daemon_work import DaemonWork
from winnow.heap import bound_arenas
from winnow.index_directory import shard_directories
from winnow.rpc import process
from winnow.standalone.composing.shards import LocalShards
from winnow.standalone.settings import StandaloneSettings
from winnow.stateless.composing.front import open_front
from winnow.stateless.composing.serving import serve_front
from winnow.telemetry.tracing.tracer import Tracer


def run(settings: StandaloneSettings) -> None:
    """Answers questions until SIGTERM or SIGINT. Either also ends a process that still loads."""
    bound_arenas()
    for loading in process.run(settings, partial(_run, settings)):
        loading.exit_if_running()


async def _run(
    settings: StandaloneSettings, registry: CollectorRegistry, tracer: Tracer
) -> Sequence[DaemonWork[Any]]:
    directories = shard_directories(settings.index)
    node = settings.node(directories[0], feed=bool(settings.feed_listen) or None)
    async with open_front(settings, registry, tracer) as front:
        shards = LocalShards(front, node, directories)
        await serve_front(front, shards.source, [shards.part], shards.reader)
        for shard in shards.all:
            shard.start_leaving()
    return [shard.loading for shard in shards.all]
