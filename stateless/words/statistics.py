"""Counts how rare words are in one index, by asking its shards as they change.

Every shard has the same counts from when the index was built. The changes by later writes are known
to the shard that they went to. Knows shards by number; knows no gRPC.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion
from winnow.domain.shard import ShardInfo
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import IdentityError, UnavailableError, WinnowError
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.words.counts import IndexCounts, same
from winnow.stateless.words.source import WordSource

_log = structlog.get_logger("stateless.words.statistics")
_TIMEOUT = 1.0
"""Longest time in seconds for a shard to reply."""
_ALL = -1
"""Stands for all shards in place of a shard's number."""


@dataclass(frozen=True, slots=True)
class _Counted:
    log_id: str
    changes: WordChanges


class WordStatistics:
    """The counts of one index. An index that was never written to has none: its shards know."""

    def __init__(self, cluster: Cluster, sources: Callable[[int], Sequence[WordSource]]) -> None:
        """`sources`: the replicas of a shard that may be asked, the one with most writes first."""
        self._cluster, self._sources = cluster, sources
        self._counts_at_build: tuple[int, WordCounts] | None = None
        """The counts from when the index was built, and the shard that told them first."""
        self._counted: dict[int, _Counted] = {}
        self._checked: dict[int, str] = {}
        """Shards whose counts from then were compared, with the names of their logs."""
        self._said: dict[int, str] = {}
        """The last reason that was logged for each shard that cannot be counted."""
        self._counts: IndexCounts | None = None
        self.name: tuple[object, ...] = ()
        """Equal for equal counts."""

    def weigh(self, question: EncodedQuestion) -> EncodedQuestion:
        """The question with how rare its tokens are, if the index was written to."""
        return question if self._counts is None else self._counts.weigh(question)

    async def refresh(self) -> None:
        """Asks the shards that were written to since the last call, and adds up their counts.

        If a shard does not reply, its last counts stay.
        """
        moved = [shard for shard, info in self._cluster.infos.items() if self._moved(shard, info)]
        told = await asyncio.gather(*map(self._ask, moved))
        known = dict(self._counted)
        for shard, counted in zip(moved, told, strict=True):
            if counted is not None and _is_newer(counted, known.get(shard)):
                known[shard] = counted
        if known.keys() != self._counted.keys() or any(
            known[shard] is not self._counted[shard] for shard in known
        ):
            self._add_up(known)

    def _moved(self, shard: int, info: ShardInfo) -> bool:
        counted = self._counted.get(shard)
        if counted is None or counted.log_id != info.log_id:
            return self._cluster.reached_sequence(shard) > 0
        return self._cluster.reached_sequence(shard) > counted.changes.sequence

    async def _ask(self, shard: int) -> _Counted | None:
        log_id = self._cluster.infos[shard].log_id
        problem: WinnowError = UnavailableError("no replica is there")
        for source in self._sources(shard):
            try:
                if self._checked.get(shard) != log_id:
                    self._check(shard, await source.built_counts(Deadline.after(_TIMEOUT)))
                    self._checked[shard] = log_id
                changes = await source.changes(Deadline.after(_TIMEOUT))
            except WinnowError as error:
                problem = error
            else:
                self._said.pop(shard, None)
                return _Counted(log_id, changes)
        self._complain(shard, str(problem))
        return None

    def _check(self, shard: int, counts_at_build: WordCounts) -> None:
        """Raises IdentityError if another shard was built with other counts."""
        if self._counts_at_build is None:
            self._counts_at_build = shard, counts_at_build
        first, known = self._counts_at_build
        if not same(known, counts_at_build):
            raise IdentityError(
                f"shard {shard} has other counts of words than shard {first} from when the index "
                "was built: serve shards of one build"
            )

    def _add_up(self, known: dict[int, _Counted]) -> None:
        assert self._counts_at_build is not None  # a shard tells these before its changes
        try:
            counts = IndexCounts.of(
                self._counts_at_build[1], (each.changes for each in known.values())
            )
        except WinnowError as error:
            self._complain(_ALL, str(error))
            return
        self._said.pop(_ALL, None)
        self._counted, self._counts = known, counts
        self.name = tuple(
            (shard, each.log_id, each.changes.sequence) for shard, each in sorted(known.items())
        )

    def _complain(self, shard: int, reason: str) -> None:
        """Logs why the words of a shard cannot be counted, when that changes."""
        if self._said.get(shard) != reason:
            which = {} if shard == _ALL else {"shard": shard}
            _log.warning("word counts not updated", **which, reason=reason)
            self._said[shard] = reason


def _is_newer(counted: _Counted, known: _Counted | None) -> bool:
    """Whether these counts include more writes: a replica that lags has fewer."""
    if known is None or known.log_id != counted.log_id:
        return True
    return counted.changes.sequence > known.changes.sequence
