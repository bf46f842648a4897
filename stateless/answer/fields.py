"""Checks that filters name only fields that some shard has. Pure."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate

from winnow.domain.shard import MAX_FIELDS, ShardInfo
from winnow.errors import Violation
from winnow.filtering import FIELD
from winnow.quoting import quoted, shortened
from winnow.stateless.cluster.cluster import Cluster

_MAX_NAMES = 20
"""Maximum number of known fields that an error names."""
_MAX_NAME_BYTES = 600
"""Maximum size of these names in bytes.

Metadata, which gRPC limits to 8 KB, contains the error three times, once with three bytes for each
character that is not ASCII.
"""
_MAX_COMPARED = 100
"""Maximum number of known fields whose spelling is compared, which takes microseconds each."""


def fields_of_index(infos: Iterable[ShardInfo]) -> frozenset[str] | None:
    """The fields of all shards; None if a shard never replied or may have more fields."""
    shards = list(infos)
    if any(not info.generation or len(info.fields) >= MAX_FIELDS for info in shards):
        return None
    return frozenset(name for info in shards for name in info.fields)


def fields_of_cluster(cluster: Cluster) -> frozenset[str] | None:
    """The fields of all shards of a cluster; None if a shard may have more fields.

    A write that no node has reported yet may add a field.
    """
    latest, infos = cluster.latest_sequences(), cluster.shard_infos
    if any(latest[shard] > info.sequence for shard, info in infos.items()):
        return None
    return fields_of_index(infos.values())


def unknown_fields(names: Sequence[str], known: Collection[str]) -> Iterator[Violation]:
    """Yields a violation that lists known fields, if a filter names unknown fields."""
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    if not unknown:
        return
    first, others = unknown[0], len(unknown) - 1
    also = f", nor {others} more that it names" if others else ""
    yield Violation(FIELD, f"there is no field {quoted(first)}{also}: {_list_known(first, known)}")


def _list_known(unknown: str, known: Collection[str]) -> str:
    """Lists the known fields whose names are most similar to the unknown one."""
    if not known:
        return "no passage has metadata"
    similar = _similar_names(unknown, known)
    others = len(known) - len(similar)
    more = f" and {others} more" if others else ""
    return f"known are {', '.join(similar)}{more}"


def _similar_names(name: str, known: Collection[str]) -> list[str]:
    """The most similar known names, shortened, most similar first."""
    compared = sorted(known)
    if len(compared) > _MAX_COMPARED:
        compared.sort(key=lambda each: each[:1].lower() != name[:1].lower())
    ranked = sorted(compared[:_MAX_COMPARED], key=lambda each: -_name_similarity(name, each))
    listed = list(map(shortened, ranked[:_MAX_NAMES]))
    sizes = accumulate(len(each.encode()) for each in listed)
    fitting = [each for each, size in zip(listed, sizes, strict=True) if size <= _MAX_NAME_BYTES]
    return fitting or listed[:1]


def _name_similarity(name: str, other: str) -> float:
    """Similarity of two names, 0 to 1: the Dice coefficient of their letter pairs (Dice, 1945)."""
    pairs, other_pairs = _letter_pairs(name), _letter_pairs(other)
    return 2 * len(pairs & other_pairs) / (len(pairs) + len(other_pairs))


def _letter_pairs(name: str) -> set[str]:
    """Pairs of adjacent letters; a space marks each end of the name."""
    framed = f" {name.lower()} "
    return {framed[start : start + 2] for start in range(len(framed) - 1)}
