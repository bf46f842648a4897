"""Keeps the reads of one question in flight, in the order of rank.

The passages before the next check of the stopping rule are needed, and are begun at once. While
they are read, later passages are read speculatively, as `policy/reading.py` allows. The next one
begins whenever a read ends, so that no reader waits for the others. It does not begin if the
question will stop at the check. Speculative reads change no answer. A passage whose speculative
read failed is read again when it is needed. A read of a passage that is not needed is cancelled.

The needed passages of a shard share one call, so calls are few. Only the last ones before a check
are read by separate calls: their ends show which readers are idle.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.reading import Reading
from winnow.errors import WinnowError
from winnow.searcher import Read
from winnow.stateless.answer.choose import Ranked, by_shard
from winnow.stateless.policy.reading import SpeculationLimit

SendRead = Callable[[int, Sequence[Hit]], Coroutine[Any, Any, Read]]
"""Makes a shard read some of its passages: `send(shard, hits)`."""
MayStop = Callable[[int, Iterable[Reading]], bool]
"""Returns whether reading may stop before the passage at an index, given these further readings."""
_ReadTask = asyncio.Task[Read]


@dataclass(slots=True)
class _NeededReads:
    """The tasks of one shard that read its needed passages."""

    sent: list[_ReadTask] = field(default_factory=list)
    """Tasks of passages that were needed when they were begun."""
    speculative: dict[Hit, _ReadTask] = field(default_factory=dict)

    @property
    def tasks(self) -> list[_ReadTask]:
        return [*self.sent, *self.speculative.values()]


class ReadSchedule:
    """Reads the passages of one question. Leaving the context cancels the tasks that still run."""

    def __init__(
        self,
        send: SendRead,
        ranked: Ranked,
        limit: SpeculationLimit,
        *,
        may_stop: MayStop = lambda _end, _readings: False,
        failed: Container[int] = (),
    ) -> None:
        """Begins nothing yet.

        Args:
            send: makes a shard read some of its passages.
            ranked: the passages, in the order of reading.
            limit: limit of speculative reads.
            may_stop: the stopping rule. If it holds for some readings, it holds for more of them.
            failed: the shards that have failed so far; no further reads of these begin.

        """
        self._send, self._ranked, self._limit = send, ranked, limit
        self._may_stop, self._failed = may_stop, failed
        self._needed_end = 0
        """Number of ranked passages that are needed so far."""
        self._begun = 0
        """Number of ranked passages that were begun, or skipped because their shard had failed."""
        self._in_flight = Counter[int]()
        """Number of passages that are being read, by shard."""
        self._speculative: dict[tuple[int, Hit], _ReadTask] = {}
        """Tasks of passages that are not needed yet, by shard and hit."""
        self._needed: defaultdict[int, _NeededReads] = defaultdict(_NeededReads)
        """The shards whose needed passages are being read, or could not be read."""

    def begin(self, end: int) -> dict[int, Coroutine[Any, Any, Read]]:
        """Begins the reads of the passages before index `end`; returns an awaitable of them by
        shard.

        The awaited read raises a WinnowError if a passage could not be read, also when it was read
        again.
        """
        passages = self._ranked[self._needed_end : end]
        needed = [(shard, hit) for shard, hit in passages if shard not in self._failed]
        self._needed_end, self._begun = end, max(self._begun, end)
        new: Ranked = []
        for shard, hit in needed:
            task = self._speculative.pop((shard, hit), None)
            if task is None or _failed(task):
                new.append((shard, hit))
            else:
                self._needed[shard].speculative[hit] = task
        for shard, hits in self._split(new):
            self._send_needed(shard, hits)
        self._speculate()
        return {shard: self._read(shard) for shard in by_shard(needed)}

    def take_finished(self, shard: int) -> list[Reading]:
        """Returns the readings so far of a read that failed or was given up; cancels the rest."""
        tasks = self._needed.pop(shard, _NeededReads()).tasks
        for task in [*tasks, *(task for (n, _), task in self._speculative.items() if n == shard)]:
            task.cancel()
        return [reading for read in _results(tasks) for reading in read.readings]

    @property
    def unneeded(self) -> int:
        """Number of passages that were read speculatively and are not needed so far."""
        return sum(len(read.readings) for read in _results(self._speculative.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._begun = len(self._ranked)
        needed = [task for reads in self._needed.values() for task in reads.tasks]
        for task in [*needed, *self._speculative.values()]:
            task.cancel()

    def _split(self, new: Ranked) -> list[tuple[int, Sequence[Hit]]]:
        """Splits passages into calls.

        If passages remain to be read speculatively, the passages that end last get separate calls.
        """
        alone = self._limit.concurrent_reads if self._begun < len(self._ranked) else 0
        shared = max(len(new) - alone, 0)
        return [*by_shard(new[:shared]).items(), *((shard, [hit]) for shard, hit in new[shared:])]

    async def _read(self, shard: int) -> Read:
        needed = self._needed[shard]
        try:
            reads = await asyncio.gather(*needed.sent)
            ended = {hit: await _complete_read(task) for hit, task in needed.speculative.items()}
            if again := [hit for hit, read in ended.items() if read is None]:
                reads.append(await self._send_needed(shard, again))
        finally:
            for task in needed.tasks:
                task.cancel()
        del self._needed[shard]
        return _combine([*reads, *filter(None, ended.values())])

    def _send_needed(self, shard: int, hits: Sequence[Hit]) -> _ReadTask:
        task = self._begin(shard, hits)
        self._needed[shard].sent.append(task)
        return task

    def _speculate(self) -> None:
        """Begins the next speculative reads."""
        while self._begun < len(self._ranked):
            shard, hit = self._ranked[self._begun]
            if shard not in self._failed:
                if not self._may_speculate(shard):
                    return
                self._speculative[shard, hit] = self._begin(shard, [hit])
            self._begun += 1

    def _may_speculate(self, shard: int) -> bool:
        ahead = len(self._speculative)
        if not self._limit.allows(shard, self._in_flight, ahead, self._needed_end):
            return False
        needed = [task for reads in self._needed.values() for task in reads.tasks]
        if all(task.done() for task in needed):
            return False  # the next step is to check the stopping rule
        readings = [reading for read in _results(needed) for reading in read.readings]
        return not self._may_stop(self._needed_end, readings)

    def _begin(self, shard: int, hits: Sequence[Hit]) -> _ReadTask:
        task = asyncio.create_task(self._send(shard, hits))
        self._in_flight[shard] += len(hits)
        task.add_done_callback(partial(self._end, shard, len(hits)))
        return task

    def _end(self, shard: int, passages: int, task: _ReadTask) -> None:
        retrieve_exception(task)
        self._in_flight[shard] -= passages
        self._speculate()


def retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieves the exception, so that asyncio does not warn about it."""
    if not task.cancelled():
        task.exception()


def _failed(task: _ReadTask) -> bool:
    """Whether a speculative read ended without reading its passage."""
    return task.done() and all(read.unread for read in _results([task]))


async def _complete_read(task: _ReadTask) -> Read | None:
    """Awaits a speculative read; None if its passage was not read."""
    try:
        read = await task
    except WinnowError:
        return None
    return None if read.unread else read


def _combine(parts: Sequence[Read]) -> Read:
    return Read(
        tuple(reading for part in parts for reading in part.readings),
        sum((part.timings for part in parts), ShardTimings()),
        sum(part.unread for part in parts),
    )


def _results(tasks: Iterable[_ReadTask]) -> list[Read]:
    """The results of the tasks that ended without an error."""
    ended = [task for task in tasks if task.done() and not task.cancelled()]
    return [task.result() for task in ended if task.exception() is None]
