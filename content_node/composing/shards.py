"""The shards of a process, which share a reader, a pool of threads and admission control."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from winnow.content_node.composing.one_index import SameIndexCheck, most_common_index
from winnow.content_node.composing.parts import NodeParts
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.shard.manifest import ShardManifest
from winnow.domain.shard import shard_number_of
from winnow.errors import NotLoadedError, WinnowError
from winnow.telemetry.labelled import LabelledRegistries

_log = structlog.get_logger("content_node")


class RunningShards:
    """Loads and serves shards. A shard that cannot be loaded does not affect the others."""

    def __init__(
        self,
        directories: Mapping[Path, str],
        parts: NodeParts,
        registry: CollectorRegistry,
        set_serving: Callable[[bool], Awaitable[None]],
        *,
        index_id: str = "",
        served: ServedShards | None = None,
    ) -> None:
        """Loads nothing yet.

        Args:
            directories: the shards, each with the URL of snapshots from which it is restored if it
                is missing; the URL may be empty. Without directories, shards are added later.
            parts: the objects that the shards share.
            registry: gets the metrics of the shards, with a label `shard` unless there is only one.
            set_serving: called after the files of a shard changed, with whether any is served.
            index_id: the index of the shards; empty for the index of most of them.
            served: gets the shards; None for a new `ServedShards`.

        """
        self._parts, self._registry, self._set_serving = parts, registry, set_serving
        self._index_check = SameIndexCheck(index_id)
        self._infers_index = not index_id and len(directories) > 1
        self._labelled = LabelledRegistries(registry, "shard") if len(directories) != 1 else None
        self._labels = _labels(directories)
        self._serving: dict[Path, bool] = {}
        """Whether a loaded shard is served."""
        self._is_leaving = False
        self._told_of_no_archive = False
        self.all: list[RunningShard] = []
        self.served = served if served is not None else ServedShards(joint=parts.joint)
        for directory, pull in directories.items():
            self.add(directory, pull)

    async def load(self) -> None:
        """Loads all shards.

        If none can be loaded, this raises NotLoadedError. If a restart might load one of them, it
        raises the error of that shard instead.
        """
        if self._infers_index:
            directories = [shard.directory for shard in self.all]
            index_id = await DaemonWork(partial(most_common_index, directories)).result()
            self._index_check = SameIndexCheck(index_id)
        loaded = await asyncio.gather(*map(self.load_added, self.all), return_exceptions=True)
        errors = {
            shard.directory: error
            for shard, error in zip(self.all, loaded, strict=True)
            if isinstance(error, BaseException)
        }
        none_is_loaded = len(errors) == len(self.all)
        tolerated = NotLoadedError if none_is_loaded else WinnowError
        for error in errors.values():
            if not isinstance(error, tolerated):
                raise error
        if none_is_loaded:
            raise NotLoadedError("; ".join(map(str, errors.values())))
        for directory, error in errors.items():
            _log.error("shard could not be loaded", directory=str(directory), reason=str(error))

    def set_index(self, index_id: str) -> None:
        """Sets the id of the index that all shards added from now on must belong to."""
        self._index_check = SameIndexCheck(index_id)

    def add(
        self,
        directory: Path,
        pull: str = "",
        max_unmerged: int | None = None,
        *,
        hidden: bool = False,
    ) -> RunningShard:
        """Adds a shard without loading it: calls for it fail until `load_added`.

        Args:
            directory: the shard.
            pull: URL of snapshots from which a missing shard is restored; empty for none.
            max_unmerged: limit of unmerged writes of the shard; None for the limit of `parts`.
            hidden: whether the shard is not reported to front nodes.

        """
        self._labels.setdefault(directory, *_labels([directory]).values())
        shard = self._open(directory, pull, max_unmerged)
        self.all.append(shard)
        self.served.add(shard.served, hidden=hidden)
        self._parts.load.set_shards(len(self.all))
        return shard

    async def load_added(self, shard: RunningShard) -> None:
        """Loads a shard that was added. Raises NotLoadedError if it cannot be loaded."""
        try:
            await shard.load()
        except WinnowError as error:
            shard.served.fail(str(error))
            raise
        self._serving[shard.directory] = True
        if shard.is_never_archived and not self._told_of_no_archive:
            self._told_of_no_archive = True
            _log.warning(
                "shards are never archived: their index has no tenants",
                index_id=shard.served.index_id,
            )

    async def remove(self, shard: RunningShard) -> None:
        """Removes a shard: stores its waiting writes, and releases its directory."""
        self.all.remove(shard)
        self.served.remove(shard.served)
        self._serving.pop(shard.directory, None)
        shard.start_leaving()
        try:
            await shard.close()
        finally:  # the shard may be added again
            self._index_check.forget(shard.directory)
            if self._labelled is not None:
                self._labelled.drop(self._labels[shard.directory])
            self._parts.load.set_shards(len(self.all))

    def start_leaving(self) -> None:
        """Stops merging, and reports to callers that the node is leaving."""
        self._is_leaving = True
        for shard in self.all:
            shard.start_leaving()

    async def close(self) -> None:
        """Stores waiting writes, and releases the directories."""
        closed = await asyncio.gather(
            *(shard.close() for shard in self.all), return_exceptions=True
        )
        for error in closed:
            if isinstance(error, BaseException):
                raise error

    def _open(self, directory: Path, pull: str, max_unmerged: int | None) -> RunningShard:
        parts = self._parts
        if max_unmerged is not None:
            settings = parts.settings.model_copy(update={"max_unmerged": max_unmerged})
            parts = replace(parts, settings=settings)
        return RunningShard(
            directory,
            parts,
            self._registry_of(directory),
            partial(self._update_health, directory),
            check=self._check_manifest,
            live_shard=self._live_shard,
            pull=pull,
        )

    def _registry_of(self, directory: Path) -> CollectorRegistry:
        if self._labelled is None:
            return self._registry
        return self._labelled.of(self._labels[directory])

    def _live_shard(self, number: int) -> LiveShard:
        return self.served.searcher(number).transfer.shard

    def _check_manifest(self, manifest: ShardManifest, directory: Path) -> None:
        # looked up here, since `load` and `set_index` may replace it
        self._index_check.check(manifest, directory)

    async def _update_health(self, directory: Path, serving: bool) -> None:
        self._serving[directory] = serving
        if self._is_leaving:
            return  # a leaving process stays NOT_SERVING, although shards are still served
        # a node that waits for its first shard is healthy
        await self._set_serving(any(self._serving.values()) or not self._serving)


def _labels(directories: Collection[Path]) -> dict[Path, str]:
    """Labels of shards in metrics: number, else name; the path if two labels would be equal."""
    numbers = {each: shard_number_of(each.name) for each in directories}
    short = {each: each.name if n is None else str(n) for each, n in numbers.items()}
    uses = Counter(short.values())
    return {each: label if uses[label] == 1 else str(each) for each, label in short.items()}
