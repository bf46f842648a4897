"""A copy of an index in the catalog: which writes it has, and who takes the writes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from winnow.errors import ArtefactError


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLogs:
    """The ids of the logs in which a copy and its source have the copied writes, by shard.

    A shard that was restored from a snapshot may lack writes, and its log has another id. Then the
    numbers of writes do not say any more what the copy has.
    """

    source: Mapping[int, str] = field(default_factory=dict)
    own: Mapping[int, str] = field(default_factory=dict)

    def with_source(self, found: Mapping[int, str], source: str, copy: str) -> "CopyLogs":
        """Adds the present logs of the source. Raises ArtefactError if one was another before."""
        advice = (
            f"so {copy} cannot follow it: if {copy} has writes that {source} lost, go back to it "
            "(docs/indexes.md); otherwise drop it, and begin again"
        )
        return replace(self, source=_with_found(self.source, found, source, advice))

    def with_own(self, found: Mapping[int, str], copy: str) -> "CopyLogs":
        """Adds the present logs of the copy. Raises ArtefactError if one was another before."""
        advice = f"and may lack writes: drop {copy}, and begin again"
        return replace(self, own=_with_found(self.own, found, copy, advice))


NO_LOGS = CopyLogs()


def _with_found(
    known: Mapping[int, str], found: Mapping[int, str], index: str, advice: str
) -> Mapping[int, str]:
    for shard, log_id in found.items():
        if known.get(shard, log_id) not in ("", log_id):  # the first write creates the log
            raise ArtefactError(f"shard {shard} of {index} was restored from a snapshot, {advice}")
    return {**known, **found}


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
    logs: CopyLogs = NO_LOGS
    """The logs to which `positions` and the copied writes belong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWrites:
    """What the nodes of an index do with writes, because of copies."""

    closed_since: int = 0
    """Version of the catalog since which the index takes no writes of front nodes; 0 if it does."""
    source: str = ""
    """Name of the index that takes the writes; empty unless this index is a copy."""
    copied: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """The positions of each copy of this index, by the name of the copy."""
