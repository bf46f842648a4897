"""The shards of an index, in the process of a front."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from winnow.content_node.composing.parts import NodeParts, open_node_parts
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.content_node.startup_checks import check_reader
from winnow.errors import ArtefactError, NotLoadedError
from winnow.standalone.composing.nodes import LocalNodes
from winnow.stateless.composing.front import Front, Part
from winnow.telemetry.labelled import LabelledRegistries


class LocalShards:
    """All shards of an index, which share one reader, one pool of threads and one admission."""

    def __init__(self, front: Front, settings: NodeSettings, directories: Sequence[Path]) -> None:
        """The front closes them. `settings` are those of every shard.

        Raises SettingsError if the bundle's reader cannot run with the settings, ArtefactError if
        the index cannot be read.
        """
        check_reader(settings, front.bundle)
        shards = len(directories)
        parts = open_node_parts(settings, front.bundle, front.registry, front.runtimes, shards)
        front.stack.callback(parts.pool.close)
        self._shards = _open_shards(front, parts, directories)
        self.source = LocalNodes(self._shards, parts.load)
        self.part = Part(self._load)
        """Loads them. The front serves without those that cannot be loaded."""

    @property
    def all(self) -> Sequence[RunningShard]:
        """The shards, by number."""
        return list(self._shards.values())

    async def _load(self) -> None:
        """Raises ArtefactError if no shard can be loaded."""
        loaded = await asyncio.gather(*(each.load() for each in self.all), return_exceptions=True)
        self.source.loaded.set()
        faults = [each for each in loaded if isinstance(each, BaseException)]
        for fault in faults:
            if not isinstance(fault, NotLoadedError):
                raise fault
        if len(faults) == len(self._shards):
            raise ArtefactError(f"no shard can be loaded: {'; '.join(map(str, faults))}")


def _open_shards(
    front: Front, parts: NodeParts, directories: Sequence[Path]
) -> dict[str, RunningShard]:
    """The shards by the names of their directories."""
    index_id = read_index_manifest(directories[0].parent).index_id
    registries = LabelledRegistries(front.registry, "shard")
    shards = {}
    for number, directory in enumerate(directories):
        shard = RunningShard(
            directory,
            parts,
            registries.of(str(number)),
            _stay_serving,
            expected=(index_id, number),
        )
        front.stack.push_async_callback(shard.close)
        shards[directory.name] = shard
    return shards


async def _stay_serving(_serving: bool) -> None:
    """A front serves the other shards on; its coverage tells which one is missing."""
