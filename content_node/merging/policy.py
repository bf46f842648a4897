"""When a shard is merged, and when its rows are numbered again. Pure.

A merge rewrites the whole base, so it waits for a number of writes in proportion to the base. Each
passage is then copied about ten times for as many writes as there are passages, in shards of every
size. Only the limit of unmerged writes is absolute.
"""

from dataclasses import dataclass
from enum import Enum

_SHARE = 0.1
"""Writes that are merged at once, as a share of the base's passages."""
_MOST_HOLES = 0.2
"""Most deleted rows, as a share: a search of the graph visits them like other rows."""
_IDLE = 600.0
"""Seconds without a write after which all writes are merged, since a start reads the log."""
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 300.0
"""Seconds until a failed merge is repeated."""


class MergeReason(Enum):
    """Why a shard is merged."""

    WRITES = "writes"
    HOLES = "holes"
    IDLE = "idle"
    REQUESTED = "requested"
    """A program asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The state of a shard, as far as it decides about a merge."""

    passages: int
    """Passages in the base, as it lies on disk."""
    rows: int
    """Rows of the base, deleted ones included, and one for every put since."""
    dead: int
    """Deleted rows among `rows`."""
    writes: int
    """Writes since the base."""
    idle: float
    """Seconds since the last write."""


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """When a shard is merged."""

    after: int = 2_000
    """Fewest writes of a merge. About as many are searched without a graph."""
    unmerged: int = 200_000
    """Most unmerged writes: beyond it, the shard takes no writes. Some arrive during a merge."""

    def reason(self, pending: Pending) -> MergeReason | None:
        """Why the shard is merged now; None if it is not."""
        if not pending.writes:
            return None
        enough = max(self.after, pending.passages * _SHARE)
        if pending.writes >= min(enough, self.unmerged // 2):
            return MergeReason.WRITES
        # writes that are searched without a graph need no graph without holes
        if pending.dead >= self.after and is_holed(pending.rows, pending.dead):
            return MergeReason.HOLES
        return MergeReason.IDLE if pending.idle >= _IDLE else None


def is_holed(rows: int, holes: int) -> bool:
    """Whether so large a share of the rows is deleted that the others are numbered again."""
    return holes > rows * _MOST_HOLES


def retry_after(failures: int) -> float:
    """Seconds until a merge is repeated that failed `failures` times in a row, at least once."""
    doubled = min(failures - 1, 16)
    return float(min(_FIRST_RETRY * 2**doubled, _LONGEST_RETRY))
