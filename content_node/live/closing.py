"""Whether a shard refuses the writes of front nodes, because its index is copied. Pure."""

from dataclasses import dataclass

from winnow.errors import IdentityError, IndexIsCopyError, WritesHeldError


@dataclass(frozen=True, slots=True)
class Closing:
    """Which writes a shard takes: those of front nodes, those of a run of copying, or none."""

    since: int = 0
    """Version of the catalog since which front nodes are refused; 0 if they are not.

    If the index is a copy, this is also the run whose writes are taken.
    """
    source: str = ""
    """Name of the index that takes the writes; empty unless this index is a copy."""

    def check(self) -> None:
        """Raises UnavailableError if the shard takes no writes of front nodes."""
        if not self.since:
            return
        if self.source:
            raise IndexIsCopyError(
                f"the index is a copy of {self.source}, which takes the writes: write to "
                f"{self.source}, or to its alias"
            )
        raise WritesHeldError("writes wait while an alias of the index is switched: try again")

    def check_run(self, run: int) -> None:
        """Raises IdentityError unless the shard takes the writes of a run of copying."""
        if not self.source or self.since != run:
            raise IdentityError(
                f"the shard takes no writes of run {run} of copying: another process copies the "
                "index, or an alias was switched to it"
            )
