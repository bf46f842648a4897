"""Which index is served, down to the rows and the last write of every shard. Pure."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from winnow.domain.coverage import Coverage
from winnow.domain.shard import ShardInfo
from winnow.domain.write import Position


class IndexVersionName:
    """Everything that an index version depends on, as a key: its hash is calculated once."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: tuple[object, ...]) -> None:
        self._parts, self._hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, IndexVersionName) and self._parts == other._parts


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """What the answers of a cluster depend on, beside the questions."""

    name: Hashable | None
    """Equal for equal rows, writes, models, counts of passages and of words; None while they are
    not known.
    """
    sure: bool = False
    """Whether every shard said lately that this is what it serves."""
    sequences: Mapping[int, int] = field(default_factory=dict)
    """The last write of each shard; none was made where none is named."""

    def knows(self, after: Iterable[Position]) -> bool:
        """Whether these writes are in it, as far as is known."""
        return all(self.sequences.get(place.shard, 0) >= place.sequence for place in after)

    def made(self, coverage: Coverage) -> bool:
        """Whether an answer with this coverage knew of the same writes, and of no others."""
        return all(self.sequences.get(part.shard, 0) == part.sequence for part in coverage.shards)


def index_version_of(
    infos: Mapping[int, ShardInfo],
    silences: Mapping[int, Iterable[float]],
    lately: float,
    sequences: Mapping[int, int] | None = None,
    words: object = None,
) -> IndexVersion:
    """The version of a cluster.

    Args:
        infos: of every shard, as it was last heard of.
        silences: seconds since each replica of a shard was heard of. Replicas hold the same rows,
            so that one of them will do.
        lately: seconds for which a shard is believed. A longer silence may hide a change.
        sequences: the last write of each shard that is known of, if that is more than `infos` say.
        words: names the counts that questions are weighed by.

    """
    if not infos or not all(info.generation or info.log_id for info in infos.values()):
        return IndexVersion(None)
    shortest = [min(silences.get(shard, ()), default=float("inf")) for shard in infos]
    latest = {shard: info.sequence for shard, info in infos.items()} | dict(sequences or {})
    # the coverage of an answer counts passages
    held = ((info.rows, info.passages, latest[shard]) for shard, info in sorted(infos.items()))
    return IndexVersion(IndexVersionName((*held, words)), max(shortest) <= lately, latest)
