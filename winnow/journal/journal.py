"""The interface of a journal: a durable log of writes to one shard, which its replicas follow.

Does not interpret or apply entries. Implementations: `winnow.journal.jetstream` (a stream of NATS
JetStream), and a fake in the tests.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from winnow.deadline import Deadline

JOURNAL = "journal-"
"""Prefix of the ids of journals. Ids of other logs never have it."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An entry of a journal, written by one call of `publish`."""

    sequence: int
    """Sequence number of the entry, from 1, without gaps."""
    key: str
    """The key that the writer chose; empty if there is none."""
    content: bytes
    expired: bool = False
    """Whether the journal stored the entry after its expiry, so that no replica applies it. See
    `winnow.journal.expiry`.
    """


@dataclass(frozen=True, slots=True)
class PublishedEntry:
    """The acknowledgement of an entry."""

    sequence: int
    """Sequence number of the entry with the key."""
    is_duplicate: bool = False
    """Whether the journal already had an entry with the key, and stored no other."""
    attempt: int = 0
    """Number of the attempt that stored the entry."""


@dataclass(frozen=True, slots=True)
class EntryBatch:
    """Consecutive entries, and the number of stored entries after them."""

    entries: tuple[JournalEntry, ...]
    backlog: int


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """Which journal a shard has, and its last entry."""

    id: str
    """Id of the journal, as `Journal.open` returns it."""
    sequence: int
    """Sequence number of the last entry, even if it was removed; 0 before the first one."""


class ReadsJournalEnds(Protocol):
    """Reads the ends of many journals by one connection."""

    async def read(self, index_id: str, shard: int) -> JournalEnd | None:
        """Returns the end of a shard's journal, or None if there is no journal.

        `shard` is the number of the shard as it was built. Creates no journal. Raises
        UnavailableError if the journals cannot be reached.
        """

    async def close(self) -> None:
        """Disconnects."""


class Journal(Protocol):
    """A durable log. All methods raise `UnavailableError` if it cannot be reached."""

    @property
    def name(self) -> str:
        """Description of the journal for messages, without passwords."""

    @property
    def max_bytes(self) -> int:
        """Limit of bytes of an entry's content; known once the journal was opened."""

    async def open(self) -> str:
        """Connects, creates the log if there is none, and returns its id.

        The id begins with `JOURNAL`. A log that was deleted and created again has another id.
        """

    async def publish(
        self, content: bytes, key: str, deadline: Deadline, attempt: int = 0
    ) -> PublishedEntry:
        """Appends an entry; returns once it is durable.

        Entries with different contents need different keys. Calls with the same `key` store only
        one entry, within minutes. The entry may have expired when it is stored; see
        `JournalEntry.expired`. `attempt` is stored with the entry.

        Raises OverloadedError if the log is full. Raises UnavailableError or DeadlineExceededError
        if the entry was not acknowledged in time. Then the entry is not stored, or it precedes all
        later entries, or it has expired.
        """

    def read(self, after: int, key: str = "") -> AsyncGenerator[EntryBatch, None]:
        """Yields batches of the entries after a sequence number, in order, without end.

        Batches may be empty. Raises UnavailableError on a temporary failure: read again then.

        Args:
            after: sequence number of the last entry that was read.
            key: key of that entry; empty if unknown.

        Raises IdentityError if the journal has lost acknowledged entries: it lacks entries after
        `after`, ends before `after`, or its entry `after` has another key.

        """

    async def close(self) -> None:
        """Disconnects."""
