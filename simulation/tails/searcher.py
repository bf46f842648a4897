"""A shard without passages: its searches and reads take measured times, and find random hits.

Everything else is the `LocalSearcher` that ships.
"""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulation.tails.costs import Costs
from simulation.tails.loop import TimedLoop
from winnow.candidates.limits import CandidateLimits
from winnow.content_node.composing.parts import NodeParts
from winnow.content_node.live.sequence_waiter import SequenceWaiter
from winnow.content_node.local_shard import UnrankedCandidates
from winnow.content_node.searcher import LocalSearcher
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit, Passage
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo
from winnow.inference.stop_signal import StopSignal
from winnow.searcher import Retrieved

_TEXT = "w1 w2 w3"


class TimedSearcher(LocalSearcher):
    """A `LocalShard` that takes time."""

    def __init__(self, info: ShardInfo, parts: NodeParts, costs: Costs) -> None:
        # not `super().__init__`, which needs a view of a shard
        self._info, self._costs = info, costs
        self._pool, self._metrics, self._pace = parts.pool, parts.metrics, parts.pace
        self._sequence_waiter = SequenceWaiter()
        self._generations: Any = _NoGenerations()

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns the description of the shard."""
        return self._info

    def _check_question(self, question: EncodedQuestion) -> None:
        """Does nothing: all questions come from fronts of the simulation."""

    def _find(
        self,
        view: Any,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        arrived_at: float,
        stop: StopSignal,
    ) -> UnrankedCandidates:
        python, native = self._costs.retrieve()
        _loop().charge(python=python, native=native)
        rng = self._costs.rng
        distances = list(itertools.accumulate(rng.random() for _ in range(depth.passages)))
        return _Candidates(self._info, tuple(distances))

    def _read_one(
        self,
        view: Any,
        question: EncodedQuestion,
        arrived_at: float,
        call_span: Any,
        hit: Hit,
        stop: StopSignal,
    ) -> Reading:
        _loop().charge(native=self._costs.read())
        return Reading(
            passage=Passage(hit.passage_id, "", _TEXT),
            start=0,
            end=2,
            score=-hit.distance,
            relevance=0.0,
            span_score=0.0,
            distance=hit.distance,
            hybrid_distance=hit.hybrid_distance,
        )

    async def _resolve_hits(
        self, hits: Sequence[Hit], deadline: Deadline, client: str
    ) -> tuple[Any, Sequence[Hit]]:
        return None, hits


class _NoGenerations:
    def lease_newest(self, deadline: Deadline) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The hits of a shard. Their distances have the same distribution in all shards."""

    info: ShardInfo
    candidate_distances: tuple[float, ...]
    candidate_words: tuple[float, ...] = ()

    def rank(self, limits: CandidateLimits, stop: StopSignal) -> Retrieved:
        kept = [each for each in self.candidate_distances if each <= limits.max_distance]
        hits = tuple(
            Hit(
                row=row,
                passage_id=f"{self.info.shard}-{row}",
                distance=distance,
                hybrid_distance=distance,
                generation=self.info.generation,
            )
            for row, distance in enumerate(kept)
        )
        return Retrieved(
            hits, self.candidate_distances, ShardTimings(), passages=self.info.passages
        )


def _loop() -> TimedLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, TimedLoop)
    return loop
