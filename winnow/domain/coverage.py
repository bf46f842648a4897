"""Coverage: how much of the index was searched for an answer.

Coverage counts passages instead of shards, like Vespa's coverage, which counts documents.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class ShardStatus(Enum):
    """Whether a shard was searched for one question, and why not."""

    SEARCHED = "searched"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    OVERLOADED = "overloaded"
    FAILED = "failed"
    NOT_LOADED = "not_loaded"
    """The shard's nodes run, but could not load the shard."""
    ADAPTIVE = "adaptive"
    """The shard was given up before the deadline, because enough other shards had answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCoverage:
    """The coverage of one shard."""

    shard: int
    passages: int
    """Number of passages when the shard was searched; if it was not, in its last valid report."""
    status: ShardStatus
    reason: str = ""
    """Why the shard was not searched. Shown to every caller: names no machine, file or checksum."""
    sequence: int | None = None
    """Sequence number of the shard's last write when it was searched; 0 without writes.

    None if the shard was not searched, or has followed another log since.
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
