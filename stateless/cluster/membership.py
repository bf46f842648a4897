"""Which nodes form the index that is served, and which are refused and why.

Answers of nodes with other models, passages or rows must never be mixed, so a node that does not
fit is refused by name. The index that is served stays, unless it is not whole and another one is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from winnow.domain.shard import MOST_SHARDS, ShardInfo

_Rows = tuple[str, int, str, str, str]


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the front node encodes questions."""

    fingerprint: str
    """Of its bundle."""
    dimension: int
    bundle: str
    """Its name."""


@dataclass(frozen=True, slots=True, order=True)
class IndexIdentity:
    """What the shards of one index have in common."""

    index_id: str
    shards: int
    dimension: int

    @classmethod
    def of(cls, info: ShardInfo) -> "IndexIdentity":
        """The index of a shard."""
        return cls(info.index_id, info.shards, info.dimension)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The nodes that belong together."""

    identity: IndexIdentity | None = None
    """The index that the nodes form; None if there is none yet."""
    replicas: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The addresses that may be asked, for every shard of the index; none for a dead shard."""
    infos: Mapping[int, ShardInfo] = field(default_factory=dict)
    """The last info of each shard, from its replica with most writes; also of a dead shard."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why an address is left out."""

    @property
    def whole(self) -> bool:
        """Whether every shard has a replica."""
        return self.identity is not None and all(self.replicas.values())

    def missing(self) -> list[int]:
        """The shards without a replica; none while it is not known how many there are."""
        return [shard for shard, addresses in self.replicas.items() if not addresses]

    def expected(self) -> dict[int, ShardInfo] | None:
        """The info of every shard; shards never seen get equal parts of the remaining passages.

        None if there is no index, or its size is not known.
        """
        if self.identity is None:
            return None
        unseen = [shard for shard in range(self.identity.shards) if shard not in self.infos]
        known = max((info.index_passages for info in self.infos.values()), default=0)
        if unseen and not known:
            return None
        left = self._left(known, len(unseen))
        like = next(iter(self.infos.values()))
        parts = {
            shard: left // len(unseen) + (place < left % len(unseen))
            for place, shard in enumerate(unseen)
        }
        invented = {
            shard: replace(
                like, shard=shard, passages=passages, generation="", sequence=0, log_id=""
            )
            for shard, passages in parts.items()
        }
        return dict(sorted({**self.infos, **invented}.items()))

    def _left(self, built: int, unseen: int) -> int:
        """Passages of the shards never seen; `built` is what the index was built with.

        An index that was written to has another size now. Its passages are spread by a hash, so the
        shards that were seen tell how many the others have.
        """
        seen = sum(info.passages for info in self.infos.values())
        if any(info.sequence for info in self.infos.values()):
            return round(seen / len(self.infos) * unseen)
        return max(built - seen, 0)


def form(present: Mapping[str, ShardInfo], encoding: Encoding, served: ClusterView) -> ClusterView:
    """The index that the nodes `present` form; `served` is the view until now."""
    refused: dict[str, str] = {}
    indexes: dict[IndexIdentity, dict[str, ShardInfo]] = {}
    if served.identity is not None:
        indexes[served.identity] = {}
    for address, info in sorted(present.items()):
        if reason := _misfit(info, encoding):
            refused[address] = reason
        else:
            indexes.setdefault(IndexIdentity.of(info), {})[address] = info
    chosen = _choose(indexes, served.identity)
    for identity in indexes.keys() - {chosen}:
        for address, info in indexes[identity].items():
            refused[address] = (
                f"{_name(info)} is of index {info.index_id}, index "
                f"{chosen.index_id if chosen else ''} of {chosen.shards if chosen else 0} shards "
                "is served: list the shards of one index"
            )
    if chosen is None:
        return ClusterView(refused=refused)
    infos = dict(served.infos) if chosen == served.identity else {}
    replicas: dict[int, tuple[str, ...]] = {}
    by_shard: dict[int, dict[str, ShardInfo]] = {shard: {} for shard in range(chosen.shards)}
    for address, info in indexes[chosen].items():
        by_shard[info.shard][address] = info
    for shard, holders in by_shard.items():
        kept = _same_rows(holders, infos.get(shard), refused)
        replicas[shard] = tuple(kept)
        if kept:
            infos[shard] = max(kept.values(), key=lambda info: info.sequence)
    return ClusterView(chosen, replicas, infos, refused)


def _misfit(info: ShardInfo, encoding: Encoding) -> str | None:
    if info.bundle_fingerprint != encoding.fingerprint:
        return (
            f"{_name(info)} serves bundle {info.bundle_name} ({info.bundle_fingerprint}), this "
            f"front node has {encoding.bundle} ({encoding.fingerprint}): start both with "
            "the same bundle, by the same version"
        )
    if info.dimension != encoding.dimension:
        return (
            f"{_name(info)} holds vectors of {info.dimension} values, this front node's have "
            f"{encoding.dimension}: build the index with this bundle"
        )
    if not info.shard < info.shards <= MOST_SHARDS:  # a loop over the shards must be short
        return (
            f"{_name(info)} cannot be: shards are counted from 0, and an index has at most "
            f"{MOST_SHARDS:,}"
        )
    return None


def _choose(
    indexes: Mapping[IndexIdentity, Mapping[str, ShardInfo]], served: IndexIdentity | None
) -> IndexIdentity | None:
    """The served index, unless it is not whole and another one is; at first, the index with most
    shards there.

    Ties are settled by name, so that every front node chooses the same.
    """
    if not indexes:
        return None
    there = {i: len({info.shard for info in own.values()}) for i, own in indexes.items()}
    if served is not None and there[served] == served.shards:
        return served
    rest = sorted(identity for identity in there if there[identity] == identity.shards)
    if served is not None:
        return rest[0] if rest else served
    return min(rest or there, key=lambda identity: (-there[identity], identity))


def _same_rows(
    holders: Mapping[str, ShardInfo], served: ShardInfo | None, refused: dict[str, str]
) -> dict[str, ShardInfo]:
    """The replicas of one shard that have the same rows, or follow one log; the others are
    refused.
    """
    chosen = _rows([info.rows for info in holders.values()], served)
    kept = {a: info for a, info in holders.items() if info.rows == chosen}
    for address, info in holders.items():
        if address not in kept:
            like = next(iter(kept.values()))
            refused[address] = (
                f"{_name(info)} has {_held(info)}, {_held(like)} is served: "
                "give its replicas the same files, or one log to follow"
            )
    return kept


def _rows(held: Iterable[_Rows], served: ShardInfo | None) -> _Rows | None:
    """The served rows while a replica holds them, else the rows of most replicas."""
    counts = Counter(held)
    if served is not None and served.rows in counts:
        return served.rows
    return min(counts, key=lambda rows: (-counts[rows], rows), default=None)


def _held(info: ShardInfo) -> str:
    return f"log {info.log_id}" if info.log_id else f"generation {info.generation or '(unknown)'}"


def _name(info: ShardInfo) -> str:
    return f"shard {info.shard} of {info.shards}"
