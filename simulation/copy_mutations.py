"""Deliberate errors in the code that copies an index and switches an alias to the copy."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from simulation.mutations import MUTATIONS, mutation
from winnow.content_node.copying import index_nodes, run
from winnow.content_node.journal import journaled
from winnow.content_node.live import closing, shard
from winnow.stateless.composing import answers
from winnow.stateless.indexes import catalog_choice

__all__ = ["MUTATIONS"]
"""All deliberate errors: these, and those of `simulation.mutations`."""


@mutation("an index that is held takes writes", closing.Closing, "check")
def _(original: Any, self: Any) -> None:
    if self.source:
        original(self)


@mutation("a copy takes writes of clients", closing.Closing, "check")
def _(original: Any, self: Any) -> None:
    if not self.source:
        original(self)


@mutation("a copy takes the writes of earlier runs", closing.Closing, "check_run")
def _(original: Any, self: Any, run: int) -> None:
    return None


@mutation("a switch does not wait until nodes take no writes", index_nodes, "_open_replica")
def _(original: Any, shards: Any, since: int) -> str:
    return ""


@contextlib.contextmanager
def _early_switch() -> Iterator[None]:
    """The comparison of both indexes would notice missing passages, but not older texts."""
    follow = run.CopyRun.follow

    async def follow_most(self: Any, up_to: Any = None) -> int:
        return 0 if up_to is not None else await follow(self)

    async def check_nothing(self: Any) -> Any:
        return await self.target.shards()

    with (
        patch.object(run.CopyRun, "follow", follow_most),
        patch.object(run.CopyRun, "check_complete", check_nothing),
    ):
        yield


MUTATIONS["a copy replaces its source before it has the last writes"] = _early_switch


@mutation("a run that goes on forgets from which write it has to follow", run.CopyRun, "begin")
async def _(original: Any, *arguments: Any) -> Any:
    begun = await original(*arguments)
    begun._positions = {
        shard: position for shard, position in begun._positions.items() if shard in begun._filled
    }
    return begun


@mutation("a run records the last writes as copied before it has copied them", run.CopyRun, "fill")
async def _(original: Any, self: Any) -> None:
    await original(self)
    shards = await self._source_shards()
    self._positions = {shard: held.info.sequence for shard, held in shards.items()}


@mutation("copied writes lose their versions", run, "Put")
def _(original: Any, passage: Any, version: Any) -> Any:
    return original(passage, None)


@mutation("later deletions are not copied", run.CopyRun, "_copy_writes")
async def _(original: Any, self: Any, writes: Any) -> None:
    await original(self, [each for each in writes if each.put is not None])


@mutation("a log is trimmed although a copy needs its writes", shard.LiveShard, "hold_log")
def _(original: Any, self: Any, node: str, after: int) -> None:
    if not node.startswith(("copy", "winnow indexes")):
        original(self, node, after)


@mutation(
    "a replica is closed before its entries are applied",
    journaled.JournaledShard,
    "_catch_up_closed",
)
async def _(original: Any, self: Any, closing: Any) -> None:
    self.closed_since = closing.since


@mutation(
    "a closed shard keeps a write whose commit has failed", shard.LiveShard, "close_to_fronts"
)
async def _(original: Any, self: Any, closing: Any) -> None:
    async def settle_nothing() -> None:
        return None

    self.settle_log = settle_nothing
    try:
        await original(self, closing)
    finally:
        del self.settle_log


@mutation("a front resolves the alias only once", catalog_choice.CatalogChoice, "_resolve")
def _(original: Any, self: Any, name: str) -> Any:
    if not hasattr(self, "first"):
        self.first = original(self, name)
    return self.first


@mutation("a switched alias keeps its generation", catalog_choice.CatalogChoice, "choose")
def _(original: Any, self: Any, name: str) -> Any:
    chosen = original(self, name)
    self.generation = getattr(self, "generation", chosen.generation)
    return replace(chosen, generation=self.generation)


@mutation("all indexes of a front share cached answers", answers, "_open_cache")
def _(original: Any, front: Any, snapshot: Any) -> Any:
    shared = front.by_index
    if shared is None:
        return original(front, snapshot)
    if not hasattr(shared, "cache"):
        shared.cache = original(front, snapshot)
    return shared.cache
