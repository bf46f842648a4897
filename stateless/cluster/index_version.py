"""The version of the index that is served, including the last write of every shard."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from winnow.domain.coverage import Coverage
from winnow.domain.shard import ShardInfo
from winnow.domain.write import Position


class IndexVersionName:
    """A key of everything that an index version depends on. Its hash is computed once."""

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
    is_confirmed: bool = False
    """Whether every shard has recently reported this version."""
    sequences: Mapping[int, int] = field(default_factory=dict)
    """Number of the last write, by shard; 0 by default."""

    def includes(self, writes: Iterable[Position]) -> bool:
        """Whether the version is known to include these writes."""
        return all(self.sequences.get(write.shard, 0) >= write.sequence for write in writes)

    def matches(self, coverage: Coverage) -> bool:
        """Whether an answer with this coverage is of exactly these writes."""
        return all(self.sequences.get(part.shard, 0) == part.sequence for part in coverage.shards)


def index_version_of(
    infos: Mapping[int, ShardInfo],
    silences: Mapping[int, Iterable[float]],
    max_silence: float,
    sequences: Mapping[int, int] | None = None,
    words: object = None,
) -> IndexVersion:
    """The version of the index that a cluster serves.

    Args:
        infos: last report of every shard.
        silences: seconds since the last reply of each replica, by shard. Replicas hold the same
            rows, so one recent reply is enough.
        max_silence: seconds after its last reply for which a shard is assumed to be unchanged.
        sequences: numbers of the last known writes by shard, where they are beyond `infos`.
        words: name of the word counts that questions are weighted by.

    """
    if not infos or not all(info.generation or info.log_id for info in infos.values()):
        return IndexVersion(None)
    min_silences = [min(silences.get(shard, ()), default=float("inf")) for shard in infos]
    latest = {shard: info.sequence for shard, info in infos.items()} | dict(sequences or {})
    # passages are part of the name because the coverage of an answer counts them
    parts = ((info.rows, info.passages, latest[shard]) for shard, info in sorted(infos.items()))
    is_confirmed = max(min_silences) <= max_silence
    return IndexVersion(IndexVersionName((*parts, words)), is_confirmed, latest)
