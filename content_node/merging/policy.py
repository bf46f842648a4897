"""Decides when a shard is merged, and when its rows are renumbered. Pure.

A merge rewrites the whole base, so it waits for a number of writes in proportion to the base. While
a shard of any size takes as many writes as it has passages, its base is copied about ten times.
Only the limit of unmerged writes is absolute.
"""

from dataclasses import dataclass
from enum import Enum

_MERGE_SHARE = 0.1
"""Unmerged writes that cause a merge, as a share of the base's passages."""
_MAX_HOLE_SHARE = 0.2
"""Largest share of deleted rows, which a search of the graph visits like other rows."""
_IDLE_SECONDS = 600.0
"""Seconds without a write after which all writes are merged: a start replays unmerged ones."""
_TENANT_SECONDS = 30.0
"""Seconds after the deletion of a tenant until a merge removes its passages from the disk. Several
deletions share the merge.
"""
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 300.0
"""Seconds until a failed merge is retried: after the first failure, and at most."""


class MergeReason(Enum):
    """Why a shard is merged."""

    WRITES = "writes"
    HOLES = "holes"
    IDLE = "idle"
    TENANT = "tenant deleted"
    """The passages of a deleted tenant are still on the disk."""
    REQUESTED = "requested"
    """A caller of `Merger.merge_now` requested the merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeBacklog:
    """The unmerged writes and the deleted rows of a shard."""

    passages: int
    """Number of passages in the base."""
    rows: int
    """Number of rows of the base and of later puts, including deleted ones."""
    dead: int
    """Number of deleted rows."""
    writes: int
    """Number of writes after the base."""
    idle: float
    """Seconds since the last write."""
    since_tenant_deletion: float | None = None
    """Seconds since the first deletion of a tenant that is not merged; None without one."""


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """Decides when a shard is merged."""

    min_writes: int = 2_000
    """Minimum number of writes that cause a merge. About as many are searched without a graph.

    Many deleted rows, or a time without writes, cause a merge with fewer writes.
    """
    max_unmerged: int = 200_000
    """Maximum number of unmerged writes: beyond it, the shard takes no writes.

    Half of this number always causes a merge, because more writes arrive while the merge runs.
    """

    def merge_reason(self, backlog: MergeBacklog) -> MergeReason | None:
        """Returns why the shard should be merged now; None if it should not."""
        if not backlog.writes:
            return None
        enough = max(self.min_writes, backlog.passages * _MERGE_SHARE)
        if backlog.writes >= min(enough, self.max_unmerged // 2):
            return MergeReason.WRITES
        # fewer holes do not matter: that number of rows is also searched without a graph
        if backlog.dead >= self.min_writes and needs_renumbering(backlog.rows, backlog.dead):
            return MergeReason.HOLES
        if (backlog.since_tenant_deletion or 0.0) >= _TENANT_SECONDS:
            return MergeReason.TENANT
        return MergeReason.IDLE if backlog.idle >= _IDLE_SECONDS else None


def needs_renumbering(rows: int, holes: int) -> bool:
    """Whether the share of deleted rows is so large that a merge renumbers the live ones."""
    return holes > rows * _MAX_HOLE_SHARE


def retry_after(failures: int) -> float:
    """Returns the seconds to wait after `failures` failures in a row, at least one."""
    doubled = min(failures - 1, 16)
    return float(min(_FIRST_RETRY * 2**doubled, _LONGEST_RETRY))
