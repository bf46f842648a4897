"""Shards that replace their rows while a question is being answered.

A hit names a row of one generation of its shard. If the shard does not hold that generation any
more, it retrieves again, once for each question, and reads the passages that are chosen anew.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Self

from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.errors import GenerationGoneError
from winnow.searcher import Read

_Anew = Mapping[str, Hit]
"""Hits of the new generation, by the ids of the passages that they are read for."""


class StaleHitRetry:
    """Reads passages of one question; a context manager that leaves nothing running."""

    def __init__(
        self,
        read: Callable[[int, Sequence[Hit]], Coroutine[Any, Any, Read]],
        choose: Callable[[int], Coroutine[Any, Any, Sequence[Hit]]],
        chosen: Mapping[int, Sequence[Hit]],
    ) -> None:
        """`read` has a shard read some of its passages, `choose` has it retrieve again and gives
        the hits to read, best first. `chosen` are the hits that were to be read, by shard.
        """
        self._read, self._choose, self._chosen = read, choose, chosen
        self._anew: dict[int, asyncio.Task[_Anew]] = {}

    async def read(self, shard: int, hits: Sequence[Hit]) -> Read:
        """Reads passages of a shard, in the generation that it holds.

        Raises:
            GenerationGoneError: the shard replaced its rows twice.
            WinnowError: it could not retrieve or read.

        """
        if shard not in self._anew:
            try:
                return await self._read(shard, hits)
            except GenerationGoneError:
                self._begin(shard)
        # others may wait for the same: whoever is cancelled must not take it from them
        anew = await asyncio.shield(self._anew[shard])
        found = [anew[hit.passage_id] for hit in hits if hit.passage_id in anew]
        return await self._read(shard, found) if found else Read((), ShardTimings())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._anew.values():
            task.cancel()

    def _begin(self, shard: int) -> None:
        if shard not in self._anew:
            self._anew[shard] = asyncio.create_task(self._renew(shard))
            self._anew[shard].add_done_callback(_look)

    async def _renew(self, shard: int) -> _Anew:
        return replacements(self._chosen[shard], await self._choose(shard))


def replacements(old: Sequence[Hit], new: Sequence[Hit]) -> dict[str, Hit]:
    """A new hit for each old one, by the old one's passage; never more hits than there were.

    A passage stands for itself where it was chosen again. Each of the others gives way to the
    best that is left, and to none if there is none left. So no passage is read twice.
    """
    chosen = {hit.passage_id: hit for hit in new[: len(old)]}
    again = {hit.passage_id: chosen.pop(hit.passage_id) for hit in old if hit.passage_id in chosen}
    lost = [hit.passage_id for hit in old if hit.passage_id not in again]
    return again | dict(zip(lost, chosen.values(), strict=False))


def _look(task: asyncio.Task[_Anew]) -> None:
    """Takes note of a failure, or asyncio says that nobody did."""
    if not task.cancelled():
        task.exception()
