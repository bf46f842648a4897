"""A journal in this process, which can be unreachable, deliver twice, and lose entries."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, IdentityError, UnavailableError
from winnow.journal.journal import (
    JOURNAL,
    EntryBatch,
    JournalEnd,
    JournalEntry,
    PublishedEntry,
)


class FakeJournal:
    """A `Journal` that keeps its entries in memory."""

    name = "fake"

    def __init__(self, max_bytes: int = 100_000) -> None:
        self.max_bytes = max_bytes
        self.id = f"{JOURNAL}1"
        self.entries: list[JournalEntry] = []
        self.attempts: dict[str, int] = {}
        """The attempt that stored each entry, by key."""
        self.reachable = asyncio.Event()
        self.reachable.set()
        self.removed = 0
        """The last entry that a limit of the journal has removed."""
        self.reads: list[int] = []
        """The `after` of each read."""
        self.is_late = False
        """Whether entries have already expired when they are stored."""
        self._more = asyncio.Condition()

    async def open(self) -> str:
        return self.id

    async def publish(
        self, content: bytes, key: str, deadline: Deadline, attempt: int = 0
    ) -> PublishedEntry:
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline.left()):
                await self.reachable.wait()
                known = next((each.sequence for each in self.entries if each.key == key), None)
                if known is not None:
                    return PublishedEntry(known, is_duplicate=True, attempt=self.attempts[key])
                self.attempts[key] = attempt
                async with self._more:
                    self.entries.append(self._stored(key, content))
                    self._more.notify_all()
                return PublishedEntry(len(self.entries), attempt=attempt)
        raise DeadlineExceededError("not acknowledged in time")

    def _stored(self, key: str, content: bytes) -> JournalEntry:
        return JournalEntry(len(self.entries) + 1, key, content, self.is_late)

    async def read(self, after: int, key: str = "") -> AsyncGenerator[EntryBatch, None]:
        self.reads.append(after)
        if after > len(self.entries):
            raise IdentityError("another journal")
        if after < self.removed:
            raise IdentityError(f"begins at entry {self.removed + 1}")
        if key and self.entries[after - 1].key != key:
            raise IdentityError("another entry")
        while True:
            await asyncio.sleep(0)
            if not self.reachable.is_set():
                raise UnavailableError("out of reach")
            found = tuple(self.entries[after : after + 3])
            after += len(found)
            yield EntryBatch(found, len(self.entries) - after)
            async with self._more:
                while after >= len(self.entries) and self.reachable.is_set():
                    await self._more.wait()

    async def cut_off(self) -> None:
        """Makes the journal unreachable until `join`."""
        self.reachable.clear()
        async with self._more:
            self._more.notify_all()

    def join(self) -> None:
        self.reachable.set()

    async def close(self) -> None:
        return None


class FakeEnds:
    """A `ReadsJournalEnds` of one `FakeJournal`."""

    def __init__(self, journal: FakeJournal) -> None:
        self._journal = journal

    async def read(self, index_id: str, shard: int) -> JournalEnd | None:
        if not self._journal.reachable.is_set():
            raise UnavailableError("out of reach")
        return JournalEnd(self._journal.id, len(self._journal.entries))

    async def close(self) -> None:
        return None
