"""Counts the words of one index from the counts of its shards.

Every shard stores the counts of the whole built index, and counts the changes by its own writes.
Only the counts of shards that took writes are fetched. This module knows shards by number; it does
not know gRPC.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion
from winnow.domain.shard import ShardInfo
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import IdentityError, UnavailableError, WinnowError
from winnow.shard_writer import WordSource
from winnow.stateless.cluster.cluster import Cluster
from winnow.text.index_counts import IndexCounts, have_same_counts

_log = structlog.get_logger("stateless.words.statistics")
_TIMEOUT = 1.0
"""Seconds that a call to a shard may take."""
_ALL_SHARDS = -1
"""Key of `_logged_reasons` for problems of all shards together."""


@dataclass(frozen=True, slots=True)
class _ShardCounts:
    log_id: str
    changes: WordChanges


class WordStatistics:
    """The word counts of one index.

    Until the first write there are no counts here, and the shards weight the words of questions by
    the counts of the built index.
    """

    def __init__(self, cluster: Cluster, sources: Callable[[int], Sequence[WordSource]]) -> None:
        """`sources` returns a source for each replica of a shard, most writes first."""
        self._cluster, self._sources = cluster, sources
        self._counts_at_build: tuple[int, WordCounts] | None = None
        """The shard from which the counts of the built index were fetched, and these counts."""
        self._counted: dict[int, _ShardCounts] = {}
        """The changes that `_counts` includes, by shard."""
        self._checked: dict[int, str] = {}
        """The log of each shard whose counts of the built index were compared, by shard."""
        self._logged_reasons: dict[int, str] = {}
        """The last reason that was logged for each shard that cannot be counted."""
        self._counts: IndexCounts | None = None
        self.name: tuple[object, ...] = ()
        """Name of the current counts. Equal names mean equal counts."""

    @property
    def index_id(self) -> str:
        """The index whose words are counted."""
        return self._cluster.index_id

    def replace_cluster(self, cluster: Cluster) -> None:
        """Counts another cluster of the same index, in which a shard may have been split."""
        self._cluster = cluster

    def weigh(self, question: EncodedQuestion) -> EncodedQuestion:
        """Returns the question with the rarity of each of its tokens, if the index took writes."""
        return question if self._counts is None else self._counts.weigh(question)

    async def refresh(self) -> None:
        """Fetches the counts of shards that took writes since the last call, and adds them up.

        If a shard does not reply, its last counts are kept. The counts of a shard that was split
        are kept until all its parts are counted: their sum is the same.

        Does nothing for an index with tenants. Its shards count the words of each tenant, and the
        counts of all tenants are incomplete once a shard was split.
        """
        if self._cluster.has_tenants:
            return
        changed = [
            shard
            for shard, info in self._cluster.shard_infos.items()
            if self._has_changed(shard, info)
        ]
        fetched = await asyncio.gather(*map(self._fetch, changed))
        counts, has_new = dict(self._counted), False
        for shard, own in zip(changed, fetched, strict=True):
            if own is not None and _is_newer(own, counts.get(shard)):
                counts[shard], has_new = own, True
        if has_new:
            self._add_up(self._without_split(counts))

    def _without_split(self, counts: Mapping[int, _ShardCounts]) -> dict[int, _ShardCounts]:
        """Leaves out either a split shard or its parts, so that no change counts twice."""
        left_out: set[int] = set()
        for shard in counts.keys() - self._cluster.shard_infos.keys():
            parts = set(self._cluster.partition.parts_of(shard))
            left_out |= {shard} if parts <= counts.keys() else parts
        return {shard: own for shard, own in counts.items() if shard not in left_out}

    def _has_changed(self, shard: int, info: ShardInfo) -> bool:
        counted = self._counted.get(shard)
        if counted is None or counted.log_id != info.log_id:
            return self._cluster.reached_sequence(shard) > 0
        return self._cluster.reached_sequence(shard) > counted.changes.sequence

    async def _fetch(self, shard: int) -> _ShardCounts | None:
        log_id = self._cluster.shard_infos[shard].log_id
        problem: WinnowError = UnavailableError("the shard has no replica")
        for source in self._sources(shard):
            try:
                if self._checked.get(shard) != log_id:
                    self._check_build(
                        shard, await source.word_counts_at_build(Deadline.after(_TIMEOUT))
                    )
                    self._checked[shard] = log_id
                changes = await source.changes(Deadline.after(_TIMEOUT))
            except WinnowError as error:
                problem = error
            else:
                self._logged_reasons.pop(shard, None)
                return _ShardCounts(log_id, changes)
        self._log_problem(shard, str(problem))
        return None

    def _check_build(self, shard: int, counts_at_build: WordCounts) -> None:
        """Raises IdentityError if the first shard reported other counts of the built index."""
        if self._counts_at_build is None:
            self._counts_at_build = shard, counts_at_build
        first, known = self._counts_at_build
        if not have_same_counts(known, counts_at_build):
            raise IdentityError(
                f"shards {shard} and {first} have different word counts of the built index: serve "
                "shards of one build"
            )

    def _add_up(self, shards: dict[int, _ShardCounts]) -> None:
        assert self._counts_at_build is not None  # fetched before any changes
        try:
            counts = IndexCounts.of(
                self._counts_at_build[1], (each.changes for each in shards.values())
            )
        except WinnowError as error:
            self._log_problem(_ALL_SHARDS, str(error))
            return
        self._logged_reasons.pop(_ALL_SHARDS, None)
        self._counted, self._counts = shards, counts
        self.name = tuple(
            (shard, each.log_id, each.changes.sequence) for shard, each in sorted(shards.items())
        )

    def _log_problem(self, shard: int, reason: str) -> None:
        """Logs why the words of a shard cannot be counted, once for each reason."""
        if self._logged_reasons.get(shard) != reason:
            fields = {} if shard == _ALL_SHARDS else {"shard": shard}
            _log.warning("word counts not updated", **fields, reason=reason)
            self._logged_reasons[shard] = reason


def _is_newer(counted: _ShardCounts, known: _ShardCounts | None) -> bool:
    """Whether `counted` includes more writes than `known`. A lagging replica may have fewer."""
    if known is None or known.log_id != counted.log_id:
        return True
    return counted.changes.sequence > known.changes.sequence
