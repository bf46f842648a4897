"""Checks whether a shard can take writes: their ids, vectors, token ids and number."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.manifest import CONVERT_INDEX
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.partition import holds, root_of
from winnow.domain.shard import shard_of
from winnow.domain.tenant import ids_problem, names_no_passage
from winnow.domain.write import EncodedPassage, Write
from winnow.errors import PermissionDeniedError, invalid_field
from winnow.quoting import quoted

MAX_CALL_WRITES = 10_000
"""Maximum number of writes or passages of one call."""
_FLOAT_BYTES = 4
_FEED_DISABLED = "the node takes no writes: start the node with --feed"
_OLD_VERSION = f"the shard is of an older version and takes no writes: {CONVERT_INDEX}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLimits:
    """The limits of a shard for the content and the number of its writes."""

    shard: int
    """Number of this shard."""
    shards: int
    """Number of shards that the index was built with."""
    dimension: int
    """Number of values of a vector."""
    vocabulary: int
    """Number of token ids of the bundle: one more than the greatest id."""
    max_unmerged: int
    """Maximum number of writes that are not merged into the base. They are held in memory and
    searched without a graph.
    """
    has_tenants: bool = False
    """Whether the index has tenants. Then each id must name one, and else none."""
    refusal: str = ""
    """Why the shard takes no writes at all; empty if it takes writes."""

    @classmethod
    def of(cls, settings: NodeSettings, vocabulary: int, base: StoredSegment) -> "WriteLimits":
        """Returns the limits of a shard with this base; token ids are below `vocabulary`."""
        manifest = base.manifest
        refusal = "" if settings.feed else _FEED_DISABLED
        if settings.feed and manifest.words is None:
            refusal = _OLD_VERSION  # its writes could not be merged
        return cls(
            shard=manifest.shard,
            shards=manifest.shards,
            dimension=manifest.dimension,
            vocabulary=vocabulary,
            max_unmerged=settings.max_unmerged,
            has_tenants=manifest.has_tenants,
            refusal=refusal,
        )

    def holds(self, passage_id: str) -> bool:
        """Whether a passage belongs to this shard."""
        return holds(self.shard, self.shards, passage_id)

    def check(self, writes: Sequence[Write]) -> None:
        """Checks that this shard can hold the writes.

        Raises:
            InvalidRequestError: a write belongs to another shard, or its vector or a token id does
                not fit.
            PermissionDeniedError: a write names no tenant although the index has some, or it names
                one although the index has none.

        """
        self._check_room(writes, self.shard)

    def check_entry(self, writes: Sequence[Write]) -> None:
        """Checks that the writes of a journal entry are for this shard, or for other parts of the
        shard as it was built. Raises as `check`.
        """
        self._check_room(writes, root_of(self.shard, self.shards))

    def check_ids(self, identifiers: Sequence[str]) -> None:
        """Raises PermissionDeniedError unless all ids fit an index with or without tenants."""
        if problem := ids_problem(identifiers, self.has_tenants):
            raise PermissionDeniedError(problem)

    def _check_room(self, writes: Sequence[Write], within: int) -> None:
        self.check_ids([write.id for write in writes])
        for index, write in enumerate(writes):
            if not holds(within, self.shards, write.id):
                raise invalid_field(
                    f"writes[{index}].id",
                    f"{quoted(write.id)} belongs to shard {shard_of(write.id, self.shards)} or one "
                    f"of its halves, but this is shard {self.shard} of {self.shards}",
                )
            if write.put is not None:
                self._check_put(write.put, f"writes[{index}].put")
                if names_no_passage(write.id):
                    raise invalid_field(f"writes[{index}].id", "is not the id of a passage")

    def _check_put(self, put: EncodedPassage, field: str) -> None:
        values = len(put.vector) // _FLOAT_BYTES
        if values != self.dimension:
            raise invalid_field(
                f"{field}.vector",
                f"has {values} values, but the vectors of this shard have {self.dimension}",
            )
        for name in ("title_tokens", "text_tokens"):
            greatest = int(np.frombuffer(getattr(put, name), "<u4").max(initial=0))
            if greatest >= self.vocabulary:
                raise invalid_field(
                    f"{field}.{name}",
                    f"{greatest} is not a token id of the bundle: its ids are below "
                    f"{self.vocabulary}",
                )


def check_count(field: str, count: int) -> None:
    """Raises InvalidRequestError if a call has too many writes or passages."""
    if count > MAX_CALL_WRITES:
        raise invalid_field(
            field, f"has {count} elements, at most {MAX_CALL_WRITES} are allowed in one call"
        )


def direct_write_refusal(log_id: str) -> str:
    """Explains why a shard that follows a journal takes no other writes, and what to do."""
    return (
        f"the shard takes writes only from {log_id}, because a direct write would not reach its "
        "other replicas: start the node with --journal; or, to continue without replicas, build a "
        "separate index: `winnow index build --passages INDEX --out NEW`"
    )
