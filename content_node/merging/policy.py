"""When a shard is merged and when its rows are numbered anew. Pure.

A merge writes the whole base once more, so it waits for writes in proportion to the base: whatever
the shard's size, each passage is then copied about ten times for as many writes as there are
passages. Only what a shard takes without a merge bounds that.
"""

from dataclasses import dataclass
from enum import Enum

_SHARE = 0.1
"""Of the base's passages, as many writes are merged at once."""
_MOST_HOLES = 0.2
"""Share of rows that may hold nothing: a graph walks over deleted rows as over others."""
_IDLE = 600.0
"""Seconds without a write after which the rest is merged: a start reads the log write by write."""
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 300.0
"""Seconds until a merge that failed is tried again."""


class MergeReason(Enum):
    """Why a shard is merged."""

    WRITES = "writes"
    HOLES = "holes"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a merge would find."""

    passages: int
    """In the base, as it lies on disk."""
    rows: int
    """Of the base, also those that hold nothing, and one for every put since."""
    dead: int
    """Those of `rows` that hold nothing any more."""
    writes: int
    """Since the base."""
    idle: float
    """Seconds since the last of them."""


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """When a shard is merged."""

    after: int = 2_000
    """Writes, at the least; up to about as many are compared with one by one."""
    unmerged: int = 200_000
    """Writes beyond which the shard takes no more: there is to be room for those that come while it
    is merged.
    """

    def reason(self, pending: Pending) -> MergeReason | None:
        """Why it is merged now; None if it is not."""
        if not pending.writes:
            return None
        enough = max(self.after, pending.passages * _SHARE)
        if pending.writes >= min(enough, self.unmerged // 2):
            return MergeReason.WRITES
        # what is compared with one by one needs no graph without holes
        if pending.dead >= self.after and is_holed(pending.rows, pending.dead):
            return MergeReason.HOLES
        return MergeReason.IDLE if pending.idle >= _IDLE else None


def is_holed(rows: int, holes: int) -> bool:
    """Whether so many of the rows hold nothing that the others are to be numbered anew."""
    return holes > rows * _MOST_HOLES


def retry_after(failures: int) -> float:
    """Seconds until a merge is tried again that failed so many times in a row, 1 or more."""
    doubled = min(failures - 1, 16)
    return float(min(_FIRST_RETRY * 2**doubled, _LONGEST_RETRY))
