"""A fake shard that follows a journal, with its passages in a dictionary."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.tenant import id_of_no_passage, tenant_of
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Outcome, Write, Written
from winnow.errors import InvalidRequestError, OverloadedError, Violation
from winnow.passages.canonical import PassageDigest, digest


@dataclass
class FakeReplica:
    """A `JournalReplica` and a `FollowingShard`; the last write of a passage wins."""

    journal_position: str = ""
    log_id: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    """Ids of the stored writes; write number n is at index n - 1."""
    commits: int = 0
    full: bool = False
    storing: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is cleared, `store_from_journal` waits."""
    takes_writes: bool = True
    max_writes: int = 1_000
    """Largest number of writes in one call."""

    def __post_init__(self) -> None:
        self.storing.set()

    async def check_writes(self, writes: Sequence[Write]) -> None:
        await asyncio.sleep(0)
        if any(write.id == "odd" for write in writes):
            raise InvalidRequestError(Violation("id", "odd"))

    async def with_usage(
        self, writes: Sequence[Write], written: Sequence[Written]
    ) -> list[Written]:
        return list(written)

    async def end_for_halves(self) -> None:
        self.takes_writes = False

    async def store_from_journal(
        self, writes: Sequence[Write], journal_position: str, log_id: str = ""
    ) -> list[Written]:
        await asyncio.sleep(0)
        await self.storing.wait()
        if self.full or len(writes) > self.max_writes:
            raise OverloadedError("no room")
        if any(write.id == "poison" for write in writes):
            raise InvalidRequestError(Violation("id", "poison"))
        written = [self._apply(write) for write in writes]
        self.journal_position = journal_position
        self.log_id = self.log_id or log_id
        self.commits += 1
        return written

    async def find_unchanged_locally(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        passages = {each.id: each for each in puts}
        return [
            Written(Outcome.UNCHANGED, len(self.history))
            if name in self.texts
            and digest(Passage(name, "Title", self.texts[name])) == each.digest
            else None
            for name, each in passages.items()
        ]

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        return WordCounts(np.zeros(1, np.uint32), 0, 0)

    async def changes(self, deadline: Deadline) -> WordChanges:
        empty = np.zeros(0, np.uint32)
        return WordChanges(
            sequence=len(self.history), ids=empty, by=empty.astype(np.int32), passages=0, tokens=0
        )

    def _apply(self, write: Write) -> Written:
        text = write.put.passage.text if write.put is not None else None
        if self.texts.get(write.id) == text:
            if tenant := tenant_of(write.id):
                self.history.append(id_of_no_passage(tenant))
            return Written(Outcome.UNCHANGED, len(self.history))
        if text is None:
            del self.texts[write.id]
        else:
            self.texts[write.id] = text
        self.history.append(write.id)
        return Written(Outcome.STORED, len(self.history))
