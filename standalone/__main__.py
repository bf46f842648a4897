"""Puts a front node and all shards of an index together in one process, and runs it."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from winnow.content_node.composing.shard import NodeParts, RunningShard, open_parts
from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.startup_checks import check_reader
from winnow.errors import ArtefactError, NotLoadedError
from winnow.heap import bound_arenas
from winnow.index_directory import shard_directories
from winnow.rpc import process
from winnow.standalone.composing.nodes import LocalNodes
from winnow.standalone.settings import StandaloneSettings
from winnow.stateless.composing.front import Front, Part, open_front
from winnow.stateless.composing.serving import serve_front
from winnow.telemetry.labelled import LabelledRegistries
from winnow.telemetry.tracing.tracer import Tracer


def run(settings: StandaloneSettings) -> None:
    """Answers questions until SIGTERM or SIGINT, which also end a process that is loading."""
    bound_arenas()
    for loading in process.run(settings, partial(_run, settings)):
        loading.exit_if_running()


async def _run(
    settings: StandaloneSettings, registry: CollectorRegistry, tracer: Tracer
) -> Sequence[DaemonWork[Any]]:
    directories = shard_directories(settings.index)
    node = settings.node(directories[0])
    async with open_front(settings, registry, tracer) as front:
        check_reader(node, front.bundle)
        parts = open_parts(node, front.bundle, registry, front.runtimes, len(directories))
        front.stack.callback(parts.pool.close)
        shards = _shards(front, parts, directories)
        ready = Part(partial(_load, list(shards.values())))
        await serve_front(front, LocalNodes(shards, parts.load), [ready])
        for shard in shards.values():
            shard.leave()
    return [shard.loading for shard in shards.values()]


def _shards(front: Front, parts: NodeParts, directories: Sequence[Path]) -> dict[str, RunningShard]:
    """The shards by the names of their directories; the front closes them."""
    registries = LabelledRegistries(front.registry, "shard")
    shards = {}
    for number, directory in enumerate(directories):
        shard = RunningShard(directory, parts, registries.of(str(number)), _stay_serving)
        front.stack.push_async_callback(shard.close)
        shards[directory.name] = shard
    return shards


async def _stay_serving(_serving: bool) -> None:
    """A front serves the other shards on; its coverage tells which one is missing."""


async def _load(shards: Sequence[RunningShard]) -> None:
    """Loads all shards; the front serves without those that cannot be loaded.

    Raises ArtefactError if there is none that can.
    """
    loaded = await asyncio.gather(*(shard.load() for shard in shards), return_exceptions=True)
    faults = [each for each in loaded if isinstance(each, BaseException)]
    for fault in faults:
        if not isinstance(fault, NotLoadedError):
            raise fault
    if len(faults) == len(shards):
        raise ArtefactError(f"no shard can be loaded: {'; '.join(map(str, faults))}")
