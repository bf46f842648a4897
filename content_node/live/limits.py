"""Which writes a shard can take. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.domain.shard import shard_of
from winnow.domain.write import EncodedPassage, Write
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import quoted

MOST_WRITES = 10_000
"""In a call."""


@dataclass(frozen=True, slots=True)
class WriteLimits:
    """What the passages of a shard must be, and how many may come."""

    shard: int
    shards: int
    dimension: int
    vocabulary: int
    """One more than the greatest token."""
    unmerged: int
    """Writes that the base may lack: they are held in memory, and compared with one by one."""
    refusal: str = ""
    """Why no writes are taken; empty if they are."""

    def check(self, writes: Sequence[Write]) -> None:
        """Refuses writes that this shard cannot hold.

        Raises:
            InvalidRequestError: one of them is not for this shard.

        """
        check_count("writes", len(writes))
        for place, write in enumerate(writes):
            if (shard := shard_of(write.id, self.shards)) != self.shard:
                raise _wrong(
                    f"writes[{place}].id",
                    f"{quoted(write.id)} belongs to shard {shard}, this is shard {self.shard} of "
                    f"{self.shards}",
                )
            if write.put is not None:
                self._check_put(write.put, f"writes[{place}].put")

    def _check_put(self, put: EncodedPassage, field: str) -> None:
        if len(put.vector) != self.dimension:
            raise _wrong(
                f"{field}.vector",
                f"it has {len(put.vector)} values, this shard holds vectors of {self.dimension}",
            )
        for name, ids in (("title_tokens", put.title_ids), ("text_tokens", put.tokens.ids)):
            if (greatest := max(ids, default=0)) >= self.vocabulary:
                raise _wrong(
                    f"{field}.{name}",
                    f"{greatest} is not a token of the bundle, which has {self.vocabulary}",
                )


def check_count(field: str, count: int) -> None:
    """Refuses a call about too many passages."""
    if count > MOST_WRITES:
        raise _wrong(field, f"{count} in one call, at most {MOST_WRITES}")


def _wrong(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
