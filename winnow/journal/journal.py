"""The interface of a durable log of writes to one shard, which all its replicas follow.

Knows neither the content of an entry nor who applies it. Implementations:
`winnow.journal.jetstream` (a stream of NATS JetStream), and a fake in the tests.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from winnow.deadline import Deadline

JOURNAL = "journal-"
"""The prefix of ids of journals, which no other log has."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An entry of a journal: what was published at once."""

    place: int
    """Counted from 1, without gaps."""
    key: str
    """The key that its writer gave it; empty without one."""
    content: bytes
    expired: bool = False
    """Whether the journal stored it after its writer had given it up: no replica applies it. See
    `winnow.journal.expiry`.
    """


@dataclass(frozen=True, slots=True)
class Delivered:
    """Entries in their order, and the number of entries that follow by now."""

    entries: tuple[JournalEntry, ...]
    behind: int


class Journal(Protocol):
    """A log that is durable by itself, wherever it lies.

    All methods raise `UnavailableError` when it cannot be reached.
    """

    @property
    def name(self) -> str:
        """Where it lies, without any password."""

    @property
    def most_bytes(self) -> int:
        """Of the content of an entry; known once it was opened."""

    async def open(self) -> str:
        """Connects, and makes the log if there is none; its id.

        It begins with `JOURNAL`, and no other journal has it: not one of the same name, either.
        """

    async def publish(self, content: bytes, key: str, deadline: Deadline) -> int:
        """Appends an entry; returns its place once it is durable.

        With the same `key` an entry is there once; a key is used for one call. The entry may have
        expired when it was stored: its readers are told.

        Raises OverloadedError if the log is full. Raises UnavailableError or DeadlineExceededError
        if nobody acknowledged it in time. It is not there, or comes before all that is published
        from now on, or will have expired.
        """

    def read(self, after: int, key: str = "") -> AsyncGenerator[Delivered, None]:
        """Every entry after a place, in order and none twice, for ever.

        Tells now and then also that there is nothing new. Raises UnavailableError when entries
        cannot be had for the moment: read again then.

        Args:
            after: the last place that is known.
            key: of the entry there; empty if that is not known.

        Raises IdentityError if entries after that place are not there any more, or it has no such
        place, or another entry in it: it has lost what it had acknowledged.

        """

    async def close(self) -> None:
        """Disconnects."""
