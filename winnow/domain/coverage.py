"""Coverage: how much of the index was searched for an answer.

It counts passages and not shards, as Vespa's coverage counts documents.
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
    """The nodes of the shard run, but could not load it."""
    ADAPTIVE = "adaptive"
    """The shard was given up before the deadline, because enough others had answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCoverage:
    """The coverage of one shard."""

    shard: int
    passages: int
    """Number of passages when the shard was searched, or else as of its last valid report."""
    status: ShardStatus
    reason: str = ""
    """Why the shard was not searched, for every caller; names no machine, file or checksum."""
    sequence: int | None = None
    """Number of the last write that the shard had when it was searched; 0 without writes.

    None if the shard was not searched, or if it follows another log now.
    """
    detail: str = ""
    """Details of the reason, for the log and for administrators."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of all shards. `known` is always `searched` plus `failed`."""

    shards: tuple[ShardCoverage, ...]

    @classmethod
    def of(cls, shards: Iterable[ShardCoverage]) -> "Coverage":
        """Coverage of the given shards, in shard order."""
        return cls(tuple(sorted(shards, key=lambda part: part.shard)))

    @property
    def known(self) -> int:
        """Number of passages of all shards."""
        return sum(part.passages for part in self.shards)

    @property
    def searched(self) -> int:
        """Number of passages of the searched shards."""
        return sum(p.passages for p in self.shards if p.status is ShardStatus.SEARCHED)

    @property
    def failed(self) -> int:
        """Number of passages of the shards that were not searched."""
        return self.known - self.searched

    @property
    def complete(self) -> bool:
        """Whether every shard was searched."""
        return all(part.status is ShardStatus.SEARCHED for part in self.shards)
