"""Opens and loads the shards of an index in the process of a front node."""

from collections.abc import Sequence
from pathlib import Path

from winnow.content_node.composing.parts import open_node_parts
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.content_node.startup_checks import check_reader
from winnow.errors import ArtefactError, NotLoadedError
from winnow.standalone.composing.nodes import LocalNode
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.reading import ReaderOfShards


class LocalShards:
    """All shards of an index, which the front in the same process uses as a content node."""

    def __init__(self, front: Front, settings: NodeSettings, directories: Sequence[Path]) -> None:
        """Loads no shard yet; see `part`. The front closes the shards.

        `settings` apply to every shard. Raises SettingsError if the bundle's reader cannot run with
        them, and ArtefactError if the manifest of the index cannot be read.
        """
        check_reader(settings, front.bundle)
        parts = open_node_parts(
            settings, front.bundle, front.registry, front.runtimes, shards=len(directories)
        )
        front.stack.callback(parts.close)
        self.reader = ReaderOfShards(parts.pool, parts.reader.open_warm)
        """The reader of the shards, which the front may use, too."""
        self._shards = RunningShards(
            dict.fromkeys(directories, ""),
            parts,
            front.registry,
            _stay_serving,
            index_id=read_index_manifest(directories[0].parent).index_id,
        )
        front.stack.push_async_callback(self._shards.close)
        self.source = LocalNode(self._shards.served, parts.load)
        self.part = FrontPart(self._load)
        """The part of the front that loads the shards. The front serves without failed shards."""

    @property
    def all(self) -> Sequence[RunningShard]:
        """All shards, in the order of their numbers."""
        return self._shards.all

    async def _load(self) -> None:
        """Loads all shards; raises ArtefactError if none can be loaded."""
        try:
            await self._shards.load()
        except NotLoadedError as error:
            raise ArtefactError(f"no shard can be loaded: {error}") from error
        finally:
            self.source.loaded.set()


async def _stay_serving(_serving: bool) -> None:
    """Does nothing. If a shard fails, the front serves the others and reports reduced coverage."""
