"""Which writes a shard can take."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.shard import shard_of
from winnow.domain.write import EncodedPassage, Write
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import quoted

MOST_WRITES = 10_000
"""Writes of a call."""
_FLOAT_BYTES = 4
_OFF = "the node takes no writes: start the node with --feed"
_OLD = (
    "the shard is of an older version and takes no writes: `winnow index build --passages INDEX "
    "--out NEW` brings it up to date"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLimits:
    """The passages that a shard can hold, and how many writes it takes."""

    shard: int
    shards: int
    dimension: int
    vocabulary: int
    """One more than the greatest token."""
    unmerged: int
    """Writes that the base may lack: they are held in memory, and compared with one by one."""
    refusal: str = ""
    """Why no writes are taken; empty if they are."""

    @classmethod
    def of(cls, settings: NodeSettings, vocabulary: int, base: StoredSegment) -> "WriteLimits":
        """The limits of a shard for passages whose tokens are below `vocabulary`."""
        manifest = base.manifest
        refusal = "" if settings.feed else _OFF
        if settings.feed and manifest.words is None:
            refusal = _OLD  # it could not be merged
        return cls(
            shard=manifest.shard,
            shards=manifest.shards,
            dimension=manifest.dimension,
            vocabulary=vocabulary,
            unmerged=settings.max_unmerged,
            refusal=refusal,
        )

    def check(self, writes: Sequence[Write]) -> None:
        """Refuses writes that this shard cannot hold.

        Raises:
            InvalidRequestError: one of them is not for this shard.

        """
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
        values = len(put.vector) // _FLOAT_BYTES
        if values != self.dimension:
            raise _wrong(
                f"{field}.vector",
                f"it has {values} values, this shard holds vectors of {self.dimension}",
            )
        for name in ("title_tokens", "text_tokens"):
            greatest = int(np.frombuffer(getattr(put, name), "<u4").max(initial=0))
            if greatest >= self.vocabulary:
                raise _wrong(
                    f"{field}.{name}",
                    f"{greatest} is not a token of the bundle, which has {self.vocabulary}",
                )


def check_count(field: str, count: int) -> None:
    """Refuses a call with too many passages."""
    if count > MOST_WRITES:
        raise _wrong(field, f"{count} in one call, at most {MOST_WRITES}")


def no_direct_writes(log_id: str) -> str:
    """Why a shard that follows a journal takes no other writes, and what to do."""
    return (
        f"the shard follows {log_id}, and its other replicas would lack what is written to this "
        "one alone: start the node with --journal; or, to go on without replicas, make a separate "
        "index: `winnow index build --passages INDEX --out NEW`"
    )


def _wrong(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
