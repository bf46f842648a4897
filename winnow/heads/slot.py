"""The place of one head in memory."""

import asyncio
from dataclasses import dataclass

from winnow.heads.head import Head
from winnow.heads.store import Current


@dataclass(slots=True)
class Slot:
    """A head that is in memory, or on its way there."""

    id: str
    head: Head | None = None
    """None until it is loaded."""
    current: Current | None = None
    """As the store said last."""
    loading: asyncio.Task[None] | None = None
    """The first load."""
    looking: asyncio.Task[None] | None = None
    """A look whether another version is to be served."""
    looked: float = 0.0
    """When the store was asked last."""
    broken: int = 0
    """The version that could not be loaded last; 0 if there is none."""
    broken_until: float = 0.0
    """When it is tried again."""
    complaint: str = ""
    """What was said last of a look that failed."""

    @property
    def moved_to(self) -> str:
        """The ring that serves the head now, if it is another one."""
        return self.current.moved_to if self.current else ""


@dataclass(frozen=True, slots=True)
class WarmHead:
    """A head in memory, for people."""

    id: str
    version: int
    bytes: int
    """Of memory, by estimate."""
    pinned: bool
