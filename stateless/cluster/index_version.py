"""Which version of the index is served, down to the last write of every shard."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from winnow.domain.coverage import Coverage
from winnow.domain.shard import ShardInfo
from winnow.domain.write import Position


class IndexVersionName:
    """Everything that an index version depends on, as a key. Its hash is calculated once."""

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
    """The state of the index that answers depend on."""

    name: Hashable | None
    """Names are equal if rows, writes, models and counts of passages and words are equal.

    None while any of these is unknown.
    """
    sure: bool = False
    """Whether every shard confirmed lately that it serves this."""
    sequences: Mapping[int, int] = field(default_factory=dict)
    """The last write of each shard; a shard that is not named has none."""

    def knows(self, after: Iterable[Position]) -> bool:
        """Whether it includes these writes, as far as is known."""
        return all(self.sequences.get(place.shard, 0) >= place.sequence for place in after)

    def made(self, coverage: Coverage) -> bool:
        """Whether an answer with this coverage knew of exactly these writes."""
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
        infos: of every shard, by its last reply.
        silences: seconds since each replica of a shard replied. Replicas hold the same rows,
            so one of them is enough.
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
