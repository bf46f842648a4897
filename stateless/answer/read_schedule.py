"""Schedules the reads of one question, in the order of rank.

The passages before the next check of the stopping rule are needed, so their reads start at once.
Meanwhile later passages are read speculatively, as far as `policy/reading.py` allows. A speculative
read starts whenever a read ends, so that readers do not idle. It does not start if the question
will stop at the next check.

Speculative reads change no answer. If a speculative read failed, its passage is read again when it
is needed. Reads of passages that are not needed are cancelled.

The needed passages of a shard share one call, so that there are few calls. The last needed passages
before a check are an exception: each is read by a separate call. The end of such a call shows that
a reader is idle, so that a speculative read can start.
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
"""Tells whether reading may stop: `may_stop(end, more)`.

`end` is the index of the first passage that would not be read. `more` are further readings, which
the search result does not have yet.
"""
_ReadTask = asyncio.Task[Read]


@dataclass(slots=True)
class _NeededReads:
    """The tasks that read the needed passages of one shard."""

    sent: list[_ReadTask] = field(default_factory=list)
    """Tasks of passages that were needed when their read started."""
    speculative: dict[Hit, _ReadTask] = field(default_factory=dict)
    """Tasks of passages that were not needed yet when their read started, by hit."""

    @property
    def tasks(self) -> list[_ReadTask]:
        return [*self.sent, *self.speculative.values()]


class ReadSchedule:
    """Reads the passages of one question. Leaving the context cancels the running reads."""

    def __init__(
        self,
        send: SendRead,
        ranked: Ranked,
        limit: SpeculationLimit,
        *,
        may_stop: MayStop = lambda _end, _readings: False,
        failed: Container[int] = (),
    ) -> None:
        """Starts no read yet; see `start_needed`.

        Args:
            send: makes a shard read some of its passages.
            ranked: the passages, in the order of reading.
            limit: limit of speculative reads.
            may_stop: the stopping rule. If it is true for some readings, it must be true for these
                readings and more.
            failed: the shards that have failed so far. No further reads of these shards start.

        """
        self._send, self._ranked, self._limit = send, ranked, limit
        self._may_stop, self._failed = may_stop, failed
        self._needed_end = 0
        """Number of ranked passages that are needed so far."""
        self._next = 0
        """Index of the next ranked passage to read. Passages of failed shards are skipped."""
        self._in_flight = Counter[int]()
        """Number of passages that are being read, by shard."""
        self._speculative: dict[tuple[int, Hit], _ReadTask] = {}
        """Tasks of passages that are not needed yet, by shard and hit."""
        self._needed: defaultdict[int, _NeededReads] = defaultdict(_NeededReads)
        """Tasks of needed passages, by shard. A shard is removed when its needed reads succeed."""

    def start_needed(self, end: int) -> dict[int, Coroutine[Any, Any, Read]]:
        """Makes the passages before index `end` needed, and starts their reads.

        Returns a coroutine for each shard, which returns the combined read of these passages. It
        raises a WinnowError if a passage cannot be read. A passage whose speculative read failed is
        tried again before.
        """
        passages = self._ranked[self._needed_end : end]
        needed = [(shard, hit) for shard, hit in passages if shard not in self._failed]
        self._needed_end, self._next = end, max(self._next, end)
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
        """Returns the readings of a shard whose read failed or was given up; cancels the others."""
        tasks = self._needed.pop(shard, _NeededReads()).tasks
        for task in [*tasks, *(task for (n, _), task in self._speculative.items() if n == shard)]:
            task.cancel()
        return [reading for read in _successful_reads(tasks) for reading in read.readings]

    @property
    def unneeded(self) -> int:
        """Number of passages that were read speculatively and are not needed so far."""
        return sum(len(read.readings) for read in _successful_reads(self._speculative.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._next = len(self._ranked)  # start no further reads
        needed = [task for reads in self._needed.values() for task in reads.tasks]
        for task in [*needed, *self._speculative.values()]:
            task.cancel()

    def _split(self, new: Ranked) -> list[tuple[int, Sequence[Hit]]]:
        """Splits needed passages into calls.

        If speculative reads may follow, the last passages get separate calls.
        """
        alone = self._limit.concurrent_reads if self._next < len(self._ranked) else 0
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
        return _combine_reads([*reads, *filter(None, ended.values())])

    def _send_needed(self, shard: int, hits: Sequence[Hit]) -> _ReadTask:
        task = self._start_read(shard, hits)
        self._needed[shard].sent.append(task)
        return task

    def _speculate(self) -> None:
        """Starts as many speculative reads as are allowed now."""
        while self._next < len(self._ranked):
            shard, hit = self._ranked[self._next]
            if shard not in self._failed:
                if not self._may_speculate(shard):
                    return
                self._speculative[shard, hit] = self._start_read(shard, [hit])
            self._next += 1

    def _may_speculate(self, shard: int) -> bool:
        ahead = len(self._speculative)
        if not self._limit.allows(shard, self._in_flight, ahead, self._needed_end):
            return False
        needed = [task for reads in self._needed.values() for task in reads.tasks]
        if all(task.done() for task in needed):
            return False  # the stopping rule is about to be checked
        readings = [reading for read in _successful_reads(needed) for reading in read.readings]
        return not self._may_stop(self._needed_end, readings)

    def _start_read(self, shard: int, hits: Sequence[Hit]) -> _ReadTask:
        task = asyncio.create_task(self._send(shard, hits))
        self._in_flight[shard] += len(hits)
        task.add_done_callback(partial(self._handle_end, shard, len(hits)))
        return task

    def _handle_end(self, shard: int, passages: int, task: _ReadTask) -> None:
        retrieve_exception(task)
        self._in_flight[shard] -= passages
        self._speculate()


def retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieves the exception of a task that is done, so that asyncio does not warn about it."""
    if not task.cancelled():
        task.exception()


def _failed(task: _ReadTask) -> bool:
    """Whether a speculative read ended without reading its passage."""
    return task.done() and all(read.unread for read in _successful_reads([task]))


async def _complete_read(task: _ReadTask) -> Read | None:
    """Awaits a speculative read; None if its passage was not read."""
    try:
        read = await task
    except WinnowError:
        return None
    return None if read.unread else read


def _combine_reads(parts: Sequence[Read]) -> Read:
    return Read(
        tuple(reading for part in parts for reading in part.readings),
        sum((part.timings for part in parts), ShardTimings()),
        sum(part.unread for part in parts),
    )


def _successful_reads(tasks: Iterable[_ReadTask]) -> list[Read]:
    """The results of the tasks that have ended without an error."""
    ended = [task for task in tasks if task.done() and not task.cancelled()]
    return [task.result() for task in ended if task.exception() is None]
