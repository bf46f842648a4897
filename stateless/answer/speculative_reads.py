"""Passages that are read before they are known to be needed.

`policy/reading.py` says which passages; here each has a task. Speculative reads change no answer: a
passage that could not be read ahead is read again when it is needed, and the read of a passage
that is not needed is cancelled.
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

Send = Callable[[int, Sequence[Hit]], Coroutine[Any, Any, Read]]
_Task = asyncio.Task[Read]


class SpeculativeReads:
    """The passages that one question reads; a context manager that leaves nothing running."""

    def __init__(self, send: Send, passages: Ranked) -> None:
        """`send` has a shard read some of its passages. `passages` are read ahead; they are sent
        right behind the first passages that are needed.
        """
        self._send, self._waiting = send, passages
        self._ahead: dict[tuple[int, str], _Task] = {}
        """Tasks of passages that are not needed yet, by shard and passage."""
        self._needed: dict[int, tuple[list[Read], Collection[_Task]]] = {}
        """Parts of a read that goes on or has failed, by shard: those that were sent when they
        were needed, and those that had been sent ahead.
        """

    async def read(self, shard: int, hits: Sequence[Hit]) -> Read:
        """Reads passages of a shard; waits for the ones that are being read already.

        Raises:
            WinnowError: a passage cannot be read, also not when asked for again.

        """
        taken = {hit: task for hit in hits if (task := self._take(shard, hit))}
        ahead = {hit: task for hit, task in taken.items() if not _failed(task)}
        sent: list[Read] = []
        self._needed[shard] = sent, ahead.values()
        self._begin()
        try:
            if fresh := [hit for hit in hits if hit not in ahead]:
                sent.append(await self._send(shard, fresh))
            ended = {hit: await _whole(task) for hit, task in ahead.items()}
            if again := [hit for hit, read in ended.items() if read is None]:
                sent.append(await self._send(shard, again))
        finally:
            for task in ahead.values():
                task.cancel()
        del self._needed[shard]
        return _together([*sent, *filter(None, ended.values())])

    def in_hand(self, shard: int, hits: Sequence[Hit]) -> list[Reading]:
        """The readings so far of a read that has failed, or was given up."""
        sent, ahead = self._needed.pop(shard, ([], ()))
        tasks = [*ahead, *filter(None, (self._take(shard, hit) for hit in hits))]
        for task in tasks:
            task.cancel()
        return [reading for part in (*sent, *_answered(tasks)) for reading in part.readings]

    @property
    def in_vain(self) -> int:
        """Number of passages that were read so far and not needed."""
        return sum(len(part.readings) for part in _answered(self._ahead.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._ahead.values():
            task.cancel()

    def _take(self, shard: int, hit: Hit) -> _Task | None:
        return self._ahead.pop((shard, hit.passage_id), None)

    def _begin(self) -> None:
        for shard, hit in self._waiting:
            task = asyncio.create_task(self._send(shard, [hit]))
            task.add_done_callback(retrieve_exception)
            self._ahead[shard, hit.passage_id] = task
        self._waiting = []


def retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieves the exception, so that asyncio does not warn about it."""
    if not task.cancelled():
        task.exception()


def _failed(task: _Task) -> bool:
    """Whether a passage was to be read ahead, and could not be read, or not in time."""
    return task.done() and all(read.unread for read in _answered([task]))


async def _whole(task: _Task) -> Read | None:
    """A passage that was read ahead; None if it could not be read, or not in time."""
    try:
        read = await task
    except WinnowError:
        return None
    return None if read.unread else read


def _together(parts: Sequence[Read]) -> Read:
    return Read(
        tuple(reading for part in parts for reading in part.readings),
        sum((part.timings for part in parts), ShardTimings()),
        sum(part.unread for part in parts),
    )


def _answered(tasks: Iterable[_Task]) -> list[Read]:
    """The results of the tasks that have one."""
    ended = [task for task in tasks if task.done() and not task.cancelled()]
    return [task.result() for task in ended if task.exception() is None]
