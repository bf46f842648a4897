"""A copy of an index in the catalog: which writes it has, and who takes the writes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCopy:
    """An index that follows the writes of another one, its source, and takes no other writes."""

    source: str
    """Name of the source."""
    run: int
    """Version of the catalog that began the current run of copying.

    The nodes of the copy take writes of this run only, so an earlier run that was paused or cut off
    changes nothing any more.
    """
    positions: Mapping[int, int] = field(default_factory=dict)
    """By shard of the source, the number of a write; its earlier writes are in the copy.

    A shard is missing before its passages are copied for the first time.
    """
    filled: tuple[int, ...] = ()
    """Shards of the source whose passages were copied. Only later writes are missing."""
    held: int = 0
    """Version of the catalog since which the source takes no writes, so that the copy can replace
    it; 0 if the source takes writes.
    """
    was_replaced: bool = False
    """Whether the copy took the writes earlier, until its source replaced it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWrites:
    """What the nodes of an index do with writes, because of copies."""

    closed_since: int = 0
    """Version of the catalog since which the index takes no writes of front nodes; 0 if it does."""
    source: str = ""
    """Name of the index that takes the writes; empty unless this index is a copy."""
    copied: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """The positions of each copy of this index, by the name of the copy."""
