"""Values that several indexes of a front share: opened for the first one, closed after the last."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(slots=True)
class _SharedValue(Generic[Value]):
    value: Value
    stack: AsyncExitStack
    """Closes the value."""
    users: int


class SharedValues(Generic[Key, Value]):
    """Open values by key, with the number of their users. Used on the event loop."""

    def __init__(self) -> None:
        self._shared: dict[Key, _SharedValue[Value]] = {}
        self._opening = asyncio.Lock()

    @property
    def all(self) -> list[Value]:
        """All open values."""
        return [each.value for each in self._shared.values()]

    def keep(self, key: Key, value: Value) -> None:
        """Adds a value that is never closed here."""
        self._shared[key] = _SharedValue(value, AsyncExitStack(), 1)

    async def use(
        self, key: Key, opened: Callable[[AsyncExitStack], Awaitable[Value]], user: AsyncExitStack
    ) -> Value:
        """Returns the value of a key, which `opened` opens if it is not open.

        `opened` gets the stack that closes the value after the stack of its last user was closed.
        Raises the errors of `opened`.
        """
        async with self._opening:
            if key not in self._shared:
                own = AsyncExitStack()
                try:
                    self._shared[key] = _SharedValue(await opened(own), own, 0)
                except BaseException:
                    await own.aclose()
                    raise
            shared = self._shared[key]
            shared.users += 1
            user.push_async_callback(self._release, key)
            return shared.value

    async def _release(self, key: Key) -> None:
        shared = self._shared[key]
        shared.users -= 1
        if not shared.users:
            del self._shared[key]
            await shared.stack.aclose()
