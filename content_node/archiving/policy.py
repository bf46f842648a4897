"""Decides when a shard is archived, and when a failed step is tried again. Pure."""

from dataclasses import dataclass

_CHECKS = 10
"""Number of checks in the time without calls after which a shard is archived."""
_SHORTEST_CHECK, _LONGEST_CHECK = 0.05, 60.0
"""Limits of the seconds between two checks of a shard."""
_RETRY_AFTER = 600.0
"""Most seconds after which a failed archiving is tried again. It verifies all files of a shard."""
RESTORE_PAUSE = 1.0
"""Seconds after a failed restore in which calls get its error. The next call tries again."""

CHANGE_PAUSE = 10.0
"""The same for a shard that is restored to be moved, split or copied: nobody waits for a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardUse:
    """How a shard that is not archived is used now."""

    idle: float
    """Seconds since the last call ended; 0 while a call runs."""
    has_tenants: bool
    """Whether the index has tenants."""
    deletes_tenant: bool
    """Whether passages of a deleted tenant wait for the merge that removes them."""
    since_failure: float | None = None
    """Seconds since archiving this shard failed; None if it did not."""


@dataclass(frozen=True, slots=True)
class ArchivePolicy:
    """Decides when a shard is archived."""

    after: float
    """Seconds without a call after which a shard is archived."""

    def is_due(self, use: ShardUse) -> bool:
        """Returns whether a shard should be archived now.

        A shard of an index without tenants is never due: each question calls all its shards.
        """
        if not use.has_tenants or use.deletes_tenant:
            return False
        if use.since_failure is not None and use.since_failure < self.retry_pause:
            return False
        return use.idle >= self.after

    @property
    def retry_pause(self) -> float:
        """Seconds after which a failed step is tried again."""
        return min(self.after, _RETRY_AFTER)

    @property
    def check_interval(self) -> float:
        """Seconds between two checks."""
        return min(max(self.after / _CHECKS, _SHORTEST_CHECK), _LONGEST_CHECK)
