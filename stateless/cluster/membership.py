"""Decides which replicas form the index that is served, and which are refused. Pure.

Answers of replicas with different models, passages or rows must never be mixed, so every replica
that does not match is refused. The served index is replaced by another index only if it lacks
shards and the other index is complete.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from winnow.domain.partition import Partition, is_shard_number
from winnow.domain.shard import MAX_FRONTS, MAX_SHARDS, ShardInfo
from winnow.stateless.cluster.node import ReplicaAt, ReplicaInfos
from winnow.stateless.cluster.partitioning import choose_partition, partition_of

_Identity = tuple[str, int, str, str, str]


@dataclass(frozen=True, slots=True)
class FrontEncoding:
    """The bundle with which the front node encodes questions."""

    fingerprint: str
    """Fingerprint of the bundle."""
    dimension: int
    """Number of values of a vector."""
    bundle: str
    """Name of the bundle."""


@dataclass(frozen=True, slots=True, order=True)
class IndexIdentity:
    """The properties that all shards of one index share."""

    index_id: str
    shards: int
    dimension: int

    @classmethod
    def of(cls, info: ShardInfo) -> "IndexIdentity":
        """Returns the identity of the index that a shard belongs to."""
        return cls(info.index_id, info.shards, info.dimension)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The replicas that form the served index, and all other replicas with the reasons."""

    identity: IndexIdentity | None = None
    """The served index; None if no index was found yet."""
    replicas: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Addresses of the replicas of each shard of the index; empty for a shard without replica."""
    shard_infos: Mapping[int, ShardInfo] = field(default_factory=dict)
    """Last info of each shard, from its replica with most writes. It is kept after the last replica
    is gone.
    """
    refused: Mapping[ReplicaAt, str] = field(default_factory=dict)
    """The refused replicas, with the reasons."""
    _: KW_ONLY
    unused: Mapping[ReplicaAt, str] = field(default_factory=dict)
    """Replicas that match but are not used because their shard is being split, with the reasons."""

    @property
    def partition(self) -> Partition | None:
        """The split of the index into shards; None if no index was found yet."""
        if self.identity is None:
            return None
        return partition_of(self.identity.shards, tuple(self.replicas))

    @property
    def is_whole(self) -> bool:
        """Whether every shard has a replica."""
        return self.identity is not None and all(self.replicas.values())

    def missing(self) -> list[int]:
        """The shards without a replica; empty if no index was found yet."""
        return [shard for shard, addresses in self.replicas.items() if not addresses]

    def expected(self) -> dict[int, ShardInfo] | None:
        """Returns the info of every shard, with estimates for shards that never replied.

        Each of the latter gets an equal part of the remaining passages. Returns None if no index
        was found, or if its number of passages is unknown.
        """
        if self.identity is None:
            return None
        unseen = [shard for shard in self.replicas if shard not in self.shard_infos]
        index_passages = max((info.index_passages for info in self.shard_infos.values()), default=0)
        if unseen and not index_passages:
            return None
        template = replace(
            next(iter(self.shard_infos.values())), generation="", sequence=0, log_id=""
        )
        remaining = self._unseen_passages(index_passages, len(unseen))
        estimates = {
            shard: replace(
                template,
                shard=shard,
                passages=remaining // len(unseen) + (index < remaining % len(unseen)),
            )
            for index, shard in enumerate(unseen)
        }
        return dict(sorted({**self.shard_infos, **estimates}.items()))

    def _unseen_passages(self, built: int, unseen: int) -> int:
        """Estimates the number of passages of the `unseen` shards together.

        `built` is the number of passages of the built index. After writes this number has changed.
        Then each unseen shard gets the mean of the known shards, because passages are spread evenly
        by hash.
        """
        seen = sum(info.passages for info in self.shard_infos.values())
        if any(info.sequence for info in self.shard_infos.values()):
            return round(seen / len(self.shard_infos) * unseen)
        return max(built - seen, 0)


def form_view(present: ReplicaInfos, encoding: FrontEncoding, served: ClusterView) -> ClusterView:
    """Returns the view that the present replicas form. `served` is the previous view."""
    refused: dict[ReplicaAt, str] = {}
    indexes: dict[IndexIdentity, ReplicaInfos] = {}
    if served.identity is not None:
        indexes[served.identity] = {}
    for replica, info in sorted(present.items()):
        if reason := _encoding_mismatch(info, encoding):
            refused[replica] = reason
        else:
            indexes.setdefault(IndexIdentity.of(info), {})[replica] = info
    partitions = {
        identity: _partition_shards(identity, own, served) for identity, own in indexes.items()
    }
    chosen = _choose_index(indexes, partitions, served.identity)
    for identity in indexes.keys() - {chosen}:
        for replica, info in indexes[identity].items():
            refused[replica] = (
                f"{_describe(info)} belongs to index {info.index_id}, but this front serves index "
                f"{chosen.index_id if chosen else ''} of {chosen.shards if chosen else 0} shards: "
                "list only nodes of one index"
            )
    if chosen is None:
        return ClusterView(refused=refused)
    partition = partitions[chosen]
    last = served.shard_infos if chosen == served.identity else {}
    infos = {shard: info for shard, info in last.items() if shard in partition}
    by_shard, unused = _group_by_shard(indexes[chosen], partition)
    replicas: dict[int, tuple[str, ...]] = {}
    for shard, own in by_shard.items():
        matching = _select_replicas(own, infos.get(shard), refused)
        replicas[shard] = tuple(replica.address for replica in matching)
        if matching:
            infos[shard] = _most_written_info(matching.values())
    return ClusterView(chosen, replicas, infos, refused, unused=unused)


def _most_written_info(infos: Collection[ShardInfo]) -> ShardInfo:
    """Returns the info of the replica with most writes.

    It has token vectors only if those of all replicas are equal, because answers depend on them.
    """
    info = max(infos, key=lambda info: info.sequence)
    if all(each.token_vectors == info.token_vectors for each in infos):
        return info
    return replace(info, token_vectors="")


def _partition_shards(
    identity: IndexIdentity, present: ReplicaInfos, served: ClusterView
) -> Partition:
    """Returns the shards of an index that questions use."""
    owners = {info.shard for info in present.values() if not info.writes_elsewhere}
    numbers = {info.shard for info in present.values()}
    before = served.partition if identity == served.identity else None
    return choose_partition(identity.shards, numbers, numbers - owners, before)


def _group_by_shard(
    present: ReplicaInfos, partition: Partition
) -> tuple[dict[int, ReplicaInfos], dict[ReplicaAt, str]]:
    """Returns the replicas of each shard, and the unused replicas with the reasons."""
    by_shard: dict[int, ReplicaInfos] = {shard: {} for shard in partition}
    unused = {}
    for replica, info in present.items():
        if info.shard in partition:
            by_shard[info.shard][replica] = info
        else:
            others = ", ".join(map(str, partition.parts_of(info.shard)))
            unused[replica] = f"shard {info.shard} is being split: questions use {others}"
    return by_shard, unused


def _encoding_mismatch(info: ShardInfo, encoding: FrontEncoding) -> str | None:
    if info.bundle_fingerprint != encoding.fingerprint:
        return (
            f"{_describe(info)} serves bundle {info.bundle_name} ({info.bundle_fingerprint}), but "
            f"this front has {encoding.bundle} ({encoding.fingerprint}): start the node and the "
            "front with the same bundle and the same version of Winnow"
        )
    if info.dimension != encoding.dimension:
        return (
            f"{_describe(info)} holds vectors of {info.dimension} values, but the vectors of this "
            f"front have {encoding.dimension}: build the index with the front's bundle"
        )
    # a loop over the shards must be short
    if not (0 < info.shards <= MAX_SHARDS and is_shard_number(info.shard, info.shards)):
        return (
            f"{_describe(info)} is an invalid shard number: numbers start at 0, and an index has "
            f"at most {MAX_SHARDS:,} shards"
        )
    if info.fronts > MAX_FRONTS:
        return (
            f"{_describe(info)} is reached through {info.fronts} front nodes, so front nodes use "
            "each other in a cycle: correct their --fronts"
        )
    return None


def _choose_index(
    indexes: Mapping[IndexIdentity, ReplicaInfos],
    partitions: Mapping[IndexIdentity, Partition],
    served: IndexIdentity | None,
) -> IndexIdentity | None:
    """Chooses the index to serve.

    The served index stays, unless it lacks shards and another index is complete. If no index is
    served yet, a complete index or else the one with most present shards is chosen. Ties are broken
    by name, so that every front node chooses the same index.
    """
    if not indexes:
        return None
    present = {
        identity: len({info.shard for info in own.values() if info.shard in partitions[identity]})
        for identity, own in indexes.items()
    }
    whole = sorted(each for each, count in present.items() if count == len(partitions[each]))
    if served in whole:
        return served
    if served is not None:
        return whole[0] if whole else served
    return min(whole or present, key=lambda identity: (-present[identity], identity))


def _select_replicas(
    present: ReplicaInfos, served: ShardInfo | None, refused: dict[ReplicaAt, str]
) -> ReplicaInfos:
    """Selects replicas of one shard with the same identity; adds the others to `refused`."""
    chosen = _choose_identity([info.replica_identity for info in present.values()], served)
    matching = {
        replica: info for replica, info in present.items() if info.replica_identity == chosen
    }
    for replica, info in present.items():
        if replica not in matching:
            selected = next(iter(matching.values()))
            refused[replica] = (
                f"{_describe(info)} has {_describe_data(info)}, but other replicas serve "
                f"{_describe_data(selected)}: give all replicas the same files, or one log to "
                "follow"
            )
    return matching


def _choose_identity(identities: Iterable[_Identity], served: ShardInfo | None) -> _Identity | None:
    """Returns the served identity if a replica still has it, and else that of most replicas."""
    counts = Counter(identities)
    if served is not None and served.replica_identity in counts:
        return served.replica_identity
    return min(counts, key=lambda identity: (-counts[identity], identity), default=None)


def _describe_data(info: ShardInfo) -> str:
    return f"log {info.log_id}" if info.log_id else f"generation {info.generation or '(unknown)'}"


def _describe(info: ShardInfo) -> str:
    return f"shard {info.shard} of {info.shards}"
