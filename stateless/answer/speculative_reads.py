"""Speculative reads: passages that are read before they are known to be needed.

`policy/reading.py` chooses the passages; here each has a task. Speculative reads change no answer.
A passage whose speculative read failed is read again when it is needed. A read of a passage that
is not needed is cancelled.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import Any, Self

from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.reading import Reading
from winnow.errors import WinnowError
from winnow.searcher import Read
from winnow.stateless.answer.choose import Ranked

SendRead = Callable[[int, Sequence[Hit]], Coroutine[Any, Any, Read]]
"""Has a shard read some of its passages: `send(shard, hits)`."""
_ReadTask = asyncio.Task[Read]


class SpeculativeReads:
    """Reads the passages of one question. Leaving the context cancels the tasks that still run."""

    def __init__(self, send: SendRead, passages: Ranked) -> None:
        """`passages` are read speculatively, right after the first needed passages."""
        self._send, self._unsent = send, passages
        self._speculative: dict[tuple[int, str], _ReadTask] = {}
        """Tasks of passages that are not needed yet, by shard and passage id."""
        self._needed: dict[int, tuple[list[Read], Collection[_ReadTask]]] = {}
        """Parts of a read that is running or has failed, by shard: the finished reads that were
        sent when they were needed, and the tasks of speculative reads.
        """

    async def read(self, shard: int, hits: Sequence[Hit]) -> Read:
        """Reads passages of a shard; awaits the speculative reads of these passages.

        Raises:
            WinnowError: a passage could not be read, also when it was read again.

        """
        tasks = {hit: task for hit in hits if (task := self._take(shard, hit))}
        speculative = {hit: task for hit, task in tasks.items() if not _failed(task)}
        sent: list[Read] = []
        self._needed[shard] = sent, speculative.values()
        self._send_speculative()
        try:
            if new := [hit for hit in hits if hit not in speculative]:
                sent.append(await self._send(shard, new))
            ended = {hit: await _complete_read(task) for hit, task in speculative.items()}
            if again := [hit for hit, read in ended.items() if read is None]:
                sent.append(await self._send(shard, again))
        finally:
            for task in speculative.values():
                task.cancel()
        del self._needed[shard]
        return _combine([*sent, *filter(None, ended.values())])

    def take_finished(self, shard: int, hits: Sequence[Hit]) -> list[Reading]:
        """Returns the readings so far of a read that failed or was given up; cancels the rest."""
        sent, speculative = self._needed.pop(shard, ([], ()))
        tasks = [*speculative, *filter(None, (self._take(shard, hit) for hit in hits))]
        for task in tasks:
            task.cancel()
        return [reading for part in (*sent, *_results(tasks)) for reading in part.readings]

    @property
    def unneeded(self) -> int:
        """Number of passages that were read speculatively and are not needed so far."""
        return sum(len(part.readings) for part in _results(self._speculative.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._speculative.values():
            task.cancel()

    def _take(self, shard: int, hit: Hit) -> _ReadTask | None:
        return self._speculative.pop((shard, hit.passage_id), None)

    def _send_speculative(self) -> None:
        for shard, hit in self._unsent:
            task = asyncio.create_task(self._send(shard, [hit]))
            task.add_done_callback(retrieve_exception)
            self._speculative[shard, hit.passage_id] = task
        self._unsent = []


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
