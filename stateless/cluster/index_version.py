"""The version of the served index, which includes the last write of every shard."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from winnow.domain.coverage import Coverage
from winnow.domain.shard import ShardInfo
from winnow.domain.write import Position


class IndexVersionName:
    """The name of an index version: its parts are everything that the version depends on.

    The hash is computed once.
    """

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
    """Name of the version; None if a part of it is unknown.

    Two names are equal if rows, writes, models, token vectors, and the counts of passages and words
    are equal.
    """
    is_confirmed: bool = False
    """Whether every shard has recently reported this version."""
    sequences: Mapping[int, int] = field(default_factory=dict)
    """Number of the last write of each shard; a missing shard has no write."""

    def includes(self, writes: Iterable[Position]) -> bool:
        """Whether the version is known to include these writes."""
        return all(self.sequences.get(write.shard, 0) >= write.sequence for write in writes)

    def matches(self, coverage: Coverage) -> bool:
        """Whether an answer with this coverage includes exactly the writes of this version."""
        return all(self.sequences.get(part.shard, 0) == part.sequence for part in coverage.shards)


def index_version_of(
    infos: Mapping[int, ShardInfo],
    silences: Mapping[int, Iterable[float]],
    max_silence: float,
    sequences: Mapping[int, int] | None = None,
    words: object = None,
) -> IndexVersion:
    """Returns the version of the index that a cluster serves.

    Args:
        infos: last report of every shard.
        silences: seconds since the last reply of each replica, by shard. Replicas have the same
            passages, so one recent reply is enough.
        max_silence: seconds after its last reply during which a shard is assumed to be unchanged.
        sequences: number of the last known write, for shards whose report may be older.
        words: name of the word counts that weight questions.

    """
    if not infos or not all(info.generation or info.log_id for info in infos.values()):
        return IndexVersion(None)
    min_silences = [min(silences.get(shard, ()), default=float("inf")) for shard in infos]
    latest = {shard: info.sequence for shard, info in infos.items()} | dict(sequences or {})
    # the numbers of passages are in the name because the coverage of answers has them
    parts = (
        (info.replica_identity, info.token_vectors, info.passages, latest[shard])
        for shard, info in sorted(infos.items())
    )
    is_confirmed = max(min_silences) <= max_silence
    return IndexVersion(IndexVersionName((*parts, words)), is_confirmed, latest)
