"""Retries reads of stale hits: their shard no longer holds the generation that it retrieved from.

A hit names a row of one generation of its shard. If the shard no longer holds this generation, it
retrieves again, at most once a question. Then it reads the passages that are chosen from the new
hits.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.errors import GenerationGoneError
from winnow.searcher import Read
from winnow.stateless.answer.read_schedule import SendRead, retrieve_exception

_NewHits = Mapping[str, Hit]
"""Hits of the new generation, by the ids of the passages whose hits they replace."""


class StaleHitRetry:
    """Reads passages of one question. Leaving the context cancels running retrievals."""

    def __init__(
        self,
        read: SendRead,
        choose_again: Callable[[int], Coroutine[Any, Any, Sequence[Hit]]],
        chosen: Mapping[int, Sequence[Hit]],
    ) -> None:
        """Creates a retry that has retrieved nothing yet.

        Args:
            read: makes a shard read some of its passages.
            choose_again: makes a shard retrieve again; returns its hits to read, best first.
            chosen: hits that were chosen from the first retrievals, by shard.

        """
        self._read, self._choose_again, self._chosen = read, choose_again, chosen
        self._retrievals: dict[int, asyncio.Task[_NewHits]] = {}

    async def read(self, shard: int, hits: Sequence[Hit]) -> Read:
        """Reads passages of a shard. If their hits are stale, reads the passages of new hits.

        Raises:
            GenerationGoneError: the new hits are stale, too.
            WinnowError: the shard could not retrieve or read.

        """
        if shard not in self._retrievals:
            try:
                return await self._read(shard, hits)
            except GenerationGoneError:
                self._retrieve_again(shard)
        # several reads may wait for the new hits: cancelling one must not cancel the retrieval
        new_hits = await asyncio.shield(self._retrievals[shard])
        current = [new_hits[hit.passage_id] for hit in hits if hit.passage_id in new_hits]
        return await self._read(shard, current) if current else Read((), ShardTimings())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._retrievals.values():
            task.cancel()

    def _retrieve_again(self, shard: int) -> None:
        if shard not in self._retrievals:
            self._retrievals[shard] = asyncio.create_task(self._new_hits(shard))
            self._retrievals[shard].add_done_callback(retrieve_exception)

    async def _new_hits(self, shard: int) -> _NewHits:
        return replacements(self._chosen[shard], await self._choose_again(shard))


def hits_of_same_versions(old: Sequence[Hit], new: Sequence[Hit]) -> list[Hit]:
    """Returns the new hits of the passage versions in `old`, with the distances of `old`.

    The new hits may be ranked otherwise than the old ones.
    """
    by_version = {(hit.passage_id, hit.sequence): hit for hit in new}
    pairs = ((hit, by_version.get((hit.passage_id, hit.sequence))) for hit in old)
    return [
        replace(hit, row=again.row, generation=again.generation)
        for hit, again in pairs
        if again is not None
    ]


def replacements(old: Sequence[Hit], new: Sequence[Hit]) -> dict[str, Hit]:
    """Maps the passage ids of old hits to new hits. No new hit is used twice.

    A passage that is among the new hits is mapped to its own new hit. Every other passage is mapped
    to the best unused new hit, or is left out if none remains. So there are never more hits than
    before.
    """
    unused = {hit.passage_id: hit for hit in new[: len(old)]}
    same = {hit.passage_id: unused.pop(hit.passage_id) for hit in old if hit.passage_id in unused}
    removed = [hit.passage_id for hit in old if hit.passage_id not in same]
    return same | dict(zip(removed, unused.values(), strict=False))
