"""Which index is served, down to the rows of every shard. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from winnow.domain.shard import ShardInfo


@dataclass(frozen=True, slots=True)
class Edition:
    """What the answers of a cluster depend on, beside the questions."""

    name: tuple[object, ...] | None
    """Equal for equal rows, models and counts of passages; None while they are not known."""
    sure: bool = False
    """Whether every shard said lately that this is what it serves."""


def edition_of(
    infos: Mapping[int, ShardInfo], silences: Mapping[int, Iterable[float]], lately: float
) -> Edition:
    """The edition of a cluster.

    Args:
        infos: of every shard, as it was last heard of.
        silences: seconds since each replica of a shard was heard of. Replicas hold the same rows,
            so that one of them will do.
        lately: seconds for which a shard is believed. A longer silence may hide a change.

    """
    if not infos or not all(info.generation for info in infos.values()):
        return Edition(None)
    shortest = [min(silences.get(shard, ()), default=float("inf")) for shard in infos]
    # the coverage of an answer counts passages
    name = tuple((info.rows, info.passages) for _, info in sorted(infos.items()))
    return Edition(name, max(shortest) <= lately)
