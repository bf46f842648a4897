"""How much of the index an answer comes from.

Counted in passages, not shards, as Vespa's coverage counts documents.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class ShardStatus(Enum):
    """The result of a shard for one question."""

    SEARCHED = "searched"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    OVERLOADED = "overloaded"
    FAILED = "failed"
    NOT_LOADED = "not_loaded"
    """Its nodes run, but could not load it."""
    ADAPTIVE = "adaptive"
    """Given up before the deadline, because enough others had answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCoverage:
    """The coverage of one shard."""

    shard: int
    passages: int
    """Passages when it was searched, or else at the last good registration."""
    status: ShardStatus
    reason: str = ""
    """Why it was not searched, for every caller; names no machine, file or checksum."""
    sequence: int | None = None
    """The last write that it had when it was searched; 0 before the first write.

    None if it was not searched, or follows another log by now.
    """
    detail: str = ""
    """More about the reason, for the log and for administrators."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of all shards. `known = searched + failed`, always."""

    shards: tuple[ShardCoverage, ...]

    @classmethod
    def of(cls, shards: Iterable[ShardCoverage]) -> "Coverage":
        """Coverage of the given shards, in shard order."""
        return cls(tuple(sorted(shards, key=lambda part: part.shard)))

    @property
    def known(self) -> int:
        """Passages in the whole index."""
        return sum(part.passages for part in self.shards)

    @property
    def searched(self) -> int:
        """Passages of the shards that were searched."""
        return sum(p.passages for p in self.shards if p.status is ShardStatus.SEARCHED)

    @property
    def failed(self) -> int:
        """Passages of the shards that were not."""
        return self.known - self.searched

    @property
    def complete(self) -> bool:
        """Whether every shard was searched."""
        return all(part.status is ShardStatus.SEARCHED for part in self.shards)
