"""What is fed to an index as its caller says it, and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from winnow.domain.passage import Passage
from winnow.domain.position import Position
from winnow.domain.write import Outcome


@dataclass(frozen=True, slots=True)
class FedPassage:
    """A passage to be stored, not validated."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """As JSON has it."""
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
    """What became of a write."""

    id: str
    outcome: Outcome
    position: Position
    truncated: bool = False
    """Whether the encoder read only the beginning of the passage."""


@dataclass(frozen=True, slots=True)
class FeedSummary:
    """What became of the writes of a stream."""

    stored: int
    unchanged: int
    outdated: int
    positions: tuple[Position, ...]
    """The last one in each shard that was written to."""
