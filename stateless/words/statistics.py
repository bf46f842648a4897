"""Counts the words of one index. It fetches the counts of the shards that were written to.

Every shard has the same counts at the build of the index. Each shard counts the changes by its own
later writes. Knows shards by number; does not know gRPC.
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
from winnow.stateless.words.counts import IndexCounts, are_same

_log = structlog.get_logger("stateless.words.statistics")
_TIMEOUT = 1.0
"""Seconds that a call to a shard may take."""
_ALL = -1
"""Stands for all shards, where a shard's number is expected."""


@dataclass(frozen=True, slots=True)
class _ShardCounts:
    log_id: str
    changes: WordChanges


class WordStatistics:
    """The word counts of one index.

    They are empty until its first write: till then the shards weight questions by the counts at the
    build.
    """

    def __init__(self, cluster: Cluster, sources: Callable[[int], Sequence[WordSource]]) -> None:
        """`sources` returns the replicas of a shard; the replica with most writes is first."""
        self._cluster, self._sources = cluster, sources
        self._counts_at_build: tuple[int, WordCounts] | None = None
        """The counts at the build of the index, and the shard that they were fetched from."""
        self._counted: dict[int, _ShardCounts] = {}
        self._checked: dict[int, str] = {}
        """Shards whose counts at the build were compared, with the names of their logs."""
        self._logged: dict[int, str] = {}
        """The last reason that was logged for each shard that cannot be counted."""
        self._counts: IndexCounts | None = None
        self.name: tuple[object, ...] = ()
        """Name of the current counts: equal names mean equal counts."""

    @property
    def index_id(self) -> str:
        """The index whose words are counted."""
        return self._cluster.index_id

    def continue_with(self, cluster: Cluster) -> None:
        """Counts a cluster of the same index, of which a shard was split."""
        self._cluster = cluster

    def weigh(self, question: EncodedQuestion) -> EncodedQuestion:
        """Adds the rarities of its tokens to a question, if the index was written to."""
        return question if self._counts is None else self._counts.weigh(question)

    async def refresh(self) -> None:
        """Fetches the counts of shards that were written to since the last call, and adds them up.

        If a shard does not reply, its last counts stay. Those of a shard that was split stay until
        all its parts are counted, since their sum is the same.
        """
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
        """Leaves out either a shard that was split, or its parts, so that nothing counts twice."""
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
                    self._check_build(shard, await source.built_counts(Deadline.after(_TIMEOUT)))
                    self._checked[shard] = log_id
                changes = await source.changes(Deadline.after(_TIMEOUT))
            except WinnowError as error:
                problem = error
            else:
                self._logged.pop(shard, None)
                return _ShardCounts(log_id, changes)
        self._log_problem(shard, str(problem))
        return None

    def _check_build(self, shard: int, counts_at_build: WordCounts) -> None:
        """Raises IdentityError if another shard was built with other counts."""
        if self._counts_at_build is None:
            self._counts_at_build = shard, counts_at_build
        first, known = self._counts_at_build
        if not are_same(known, counts_at_build):
            raise IdentityError(
                f"the word counts of shard {shard} differ from those of shard {first} at the build "
                "of the index: serve shards of one build"
            )

    def _add_up(self, shards: dict[int, _ShardCounts]) -> None:
        assert self._counts_at_build is not None  # they are fetched before any changes
        try:
            counts = IndexCounts.of(
                self._counts_at_build[1], (each.changes for each in shards.values())
            )
        except WinnowError as error:
            self._log_problem(_ALL, str(error))
            return
        self._logged.pop(_ALL, None)
        self._counted, self._counts = shards, counts
        self.name = tuple(
            (shard, each.log_id, each.changes.sequence) for shard, each in sorted(shards.items())
        )

    def _log_problem(self, shard: int, reason: str) -> None:
        """Logs why the words of a shard cannot be counted, once for each reason."""
        if self._logged.get(shard) != reason:
            fields = {} if shard == _ALL else {"shard": shard}
            _log.warning("word counts not updated", **fields, reason=reason)
            self._logged[shard] = reason


def _is_newer(counted: _ShardCounts, known: _ShardCounts | None) -> bool:
    """Whether these counts include more writes; those of a lagging replica may have fewer."""
    if known is None or known.log_id != counted.log_id:
        return True
    return counted.changes.sequence > known.changes.sequence
