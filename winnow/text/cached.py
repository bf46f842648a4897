"""A `TextEncoder` that remembers, around any other one.

The key is the token ids, so that spellings that the tokenizer does not tell apart (case, spaces)
are one entry (as in Roblox' BERT service, 40 % hits).
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from winnow.text.encoder import TextEncoder, TextEncoding

_Key = tuple[int, ...]
Value = TypeVar("Value", bound=np.generic)


@dataclass(slots=True)
class _Running:
    """A text that is being encoded."""

    task: asyncio.Task[TextEncoding]
    waiting: int = 0
    """How many wait for it."""


class CachedTextEncoder:
    """Keeps the most recently used encodings, and never encodes a text twice at a time."""

    def __init__(
        self, inner: TextEncoder, entries: int, count: Callable[[str], None] = lambda _: None
    ) -> None:
        """`count` is told "hit" or "miss" for each text; one that is being encoded is a hit."""
        self._inner, self._entries, self._count = inner, entries, count
        self._kept: OrderedDict[_Key, TextEncoding] = OrderedDict()
        self._running: dict[_Key, _Running] = {}

    async def encode(self, ids: Sequence[int], client: str = "") -> TextEncoding:
        """The encoding that is kept, or a new one; its arrays are shared and cannot be written.

        It is made in the turn of whoever asks first.
        """
        key = tuple(ids)
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            self._count("hit")
            return kept
        running = self._running.get(key)
        self._count("miss" if running is None else "hit")
        if running is None:
            return await self._wait(key, self._begin(key, client))
        started = time.perf_counter()
        encoding = await self._wait(key, running)
        return replace(encoding, queue=time.perf_counter() - started, encode=0.0)

    async def warm_up(self, longest: int) -> None:
        """Warms up the encoder within, and keeps nothing of it."""
        await self._inner.warm_up(longest)

    def close(self) -> None:
        """Ends what is being encoded, and the encoder within."""
        for running in self._running.values():
            running.task.cancel()
        self._inner.close()

    def _begin(self, key: _Key, client: str) -> _Running:
        running = self._running[key] = _Running(asyncio.create_task(self._encode(key, client)))
        running.task.add_done_callback(lambda _: self._ended(key, running))
        return running

    async def _wait(self, key: _Key, running: _Running) -> TextEncoding:
        """Waits among others: whoever is cancelled takes it from nobody, but the last one ends it,
        or those who gave up would keep the encoder from those who wait.
        """
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiting -= 1
            if not running.waiting:
                running.task.cancel()
                self._forget(key, running)

    async def _encode(self, key: _Key, client: str) -> TextEncoding:
        made = await self._inner.encode(key, client)
        states = None if made.states is None else _frozen(made.states)
        made = replace(made, vector=_frozen(made.vector), states=states)
        self._keep(key, replace(made, queue=0.0, encode=0.0))
        return made

    def _ended(self, key: _Key, running: _Running) -> None:
        self._forget(key, running)
        if not running.task.cancelled():
            running.task.exception()  # whoever waited was told; perhaps nobody did

    def _forget(self, key: _Key, running: _Running) -> None:
        """Who comes now gets a new one."""
        if self._running.get(key) is running:
            del self._running[key]

    def _keep(self, key: _Key, encoding: TextEncoding) -> None:
        self._kept[key] = encoding
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)


def _frozen(values: NDArray[Value]) -> NDArray[Value]:
    """A copy that nobody else has, and nobody can write to."""
    copy = values.copy()
    copy.setflags(write=False)
    return copy
