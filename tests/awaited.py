"""Counts and lists of a test whose growth it can await, without polling."""

import asyncio
from typing import Any, TypeVar

Item = TypeVar("Item")
_SECONDS = 60.0


class AwaitedCount:
    """A number that goes up and down."""

    def __init__(self) -> None:
        self.value = 0
        self._changed = asyncio.Event()

    def add(self, change: int = 1) -> None:
        self.value += change
        self._changed.set()
        self._changed = asyncio.Event()

    async def reaches(self, value: int) -> None:
        """Returns when the number is at least `value`."""
        async with asyncio.timeout(_SECONDS):
            while self.value < value:
                await self._changed.wait()


class AwaitedList(list[Item]):
    """A list that grows by `append`."""

    def __init__(self, *items: Any) -> None:
        super().__init__(*items)
        self._count = AwaitedCount()

    def append(self, item: Item) -> None:
        super().append(item)
        self._count.add()

    async def holds(self, count: int) -> None:
        """Returns when `count` items were appended."""
        await self._count.reaches(count)
