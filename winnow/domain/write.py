"""Writes to an index: passages that are put or deleted, and the outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from winnow.domain.passage import Passage


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A shard, and the number of one of its writes."""

    shard: int
    sequence: int
    """From 1; 0 before the first write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPassage:
    """A passage with all that is derived from its text, packed as it travels and is stored.

    Unpacked, the tokens would take fifty times the memory. Integers are little-endian uint32.
    """

    passage: Passage
    title_tokens: bytes
    """Token ids of the title."""
    text_tokens: bytes
    """Token ids of the text."""
    text_offsets: bytes
    """For each token of the text its first character, and one past its last."""
    vector: bytes
    """Little-endian float32 values, of norm one."""

    @property
    def words(self) -> bytes:
        """Token ids of title and text."""
        return self.title_tokens + self.text_tokens


@dataclass(frozen=True, slots=True)
class Write:
    """A put or a deletion of the passage with this id."""

    id: str
    version: int | None = None
    """A write with a lower version than the stored one changes nothing; None: the last one counts.
    """
    put: EncodedPassage | None = None
    """The passage to store; None deletes."""


class Outcome(Enum):
    """The outcome of a write, which is durable in any case."""

    STORED = "stored"
    UNCHANGED = "unchanged"
    """The same was stored before, or there was nothing to delete."""
    OUTDATED = "outdated"
    """A later version was stored before."""


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write, and the position of the shard's log after it."""

    outcome: Outcome
    sequence: int
    """Sequence number of the write if it was stored, else of the last write before it."""
    log_id: str = field(default="", compare=False)
    """Names the log that `sequence` counts in; empty if it is not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FedPassage:
    """A passage to be stored, not validated."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """An object of JSON."""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Deletion:
    """A passage to be deleted, by its id."""

    id: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """A valid passage to be stored."""

    passage: Passage
    version: int | None = None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a write."""

    id: str
    outcome: Outcome
    position: Position
    truncated: bool = False
    """Whether the encoder read only the beginning of the passage."""


@dataclass(frozen=True, slots=True)
class FeedSummary:
    """The summary of the writes of a stream."""

    stored: int
    unchanged: int
    outdated: int
    positions: tuple[Position, ...]
    """The last position in each shard that was written to."""
