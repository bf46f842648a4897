"""Retries hits of shards that replace their rows while a question is being answered.

A hit names a row of one generation of its shard. If the shard no longer holds that generation, it
retrieves again, once for each question, and reads the passages that are chosen then.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Self

from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.errors import GenerationGoneError
from winnow.searcher import Read
from winnow.stateless.answer.speculative_reads import Send, retrieve_exception

_Renewed = Mapping[str, Hit]
"""Hits of the new generation, by the ids of the passages that they are read for."""


class StaleHitRetry:
    """Reads passages of one question; a context manager that leaves nothing running."""

    def __init__(
        self,
        read: Send,
        choose: Callable[[int], Coroutine[Any, Any, Sequence[Hit]]],
        chosen: Mapping[int, Sequence[Hit]],
    ) -> None:
        """`read` has a shard read some of its passages. `choose` has it retrieve again and gives
        the hits to read, best first. `chosen` are the hits that were to be read, by shard.
        """
        self._read, self._choose, self._chosen = read, choose, chosen
        self._renewing: dict[int, asyncio.Task[_Renewed]] = {}

    async def read(self, shard: int, hits: Sequence[Hit]) -> Read:
        """Reads passages of a shard, in the generation that it holds.

        Raises:
            GenerationGoneError: the shard replaced its rows twice.
            WinnowError: it could not retrieve or read.

        """
        if shard not in self._renewing:
            try:
                return await self._read(shard, hits)
            except GenerationGoneError:
                self._renew(shard)
        # a reader that is cancelled must not take the new hits from the others that wait for them
        renewed = await asyncio.shield(self._renewing[shard])
        found = [renewed[hit.passage_id] for hit in hits if hit.passage_id in renewed]
        return await self._read(shard, found) if found else Read((), ShardTimings())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._renewing.values():
            task.cancel()

    def _renew(self, shard: int) -> None:
        if shard not in self._renewing:
            self._renewing[shard] = asyncio.create_task(self._renewed(shard))
            self._renewing[shard].add_done_callback(retrieve_exception)

    async def _renewed(self, shard: int) -> _Renewed:
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
