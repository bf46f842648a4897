"""Counters and lists whose growth a test can await, without polling."""

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

from tenacious import LONG

Item = TypeVar("Item")


class AwaitedCount:
    """A counter that can go up and down."""

    def __init__(self) -> None:
        self.value = 0
        self._changed = asyncio.Event()

    def add(self, change: int = 1) -> None:
        self.value += change
        self._changed.set()
        self._changed = asyncio.Event()

    async def reaches(self, value: int, tasks: Iterable["asyncio.Task[Any]"] = ()) -> None:
        """Waits until the counter is at least `value`; fails after `LONG` seconds.

        Raises the error of a task that fails meanwhile: the counter may depend on it.
        """
        async with asyncio.timeout(LONG):
            while self.value < value:
                changed = asyncio.ensure_future(self._changed.wait())
                running = {task for task in tasks if not task.done()}
                ended, _ = await asyncio.wait(
                    {changed, *running}, return_when=asyncio.FIRST_COMPLETED
                )
                changed.cancel()
                for task in ended & running:
                    task.result()


class AwaitedList(list[Item]):
    """A list whose length a test can await; it must grow only by `append`."""

    def __init__(self, *items: Any) -> None:
        super().__init__(*items)
        self._count = AwaitedCount()

    def append(self, item: Item) -> None:
        super().append(item)
        self._count.add()

    async def holds(self, count: int) -> None:
        """Waits until `count` items were appended; fails after `LONG` seconds."""
        await self._count.reaches(count)
