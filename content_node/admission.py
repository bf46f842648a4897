"""A `Searcher` around another one that admits only calls which can be done in time.

Work is counted in passages that wait to be read or are being read. Nothing waits here: a call that
cannot meet its deadline, with clients taking turns, is refused at once, so that the caller has time
to ask elsewhere. Retrieval is cheap and goes first, so only the number of retrievals is limited.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from winnow.content_node.metrics import NodeMetrics
from winnow.deadline import Clock, Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.errors import OverloadedError
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.policy.pace import Pace
from winnow.quoting import are
from winnow.searcher import Read, Retrieved, Searcher


class AdmittedSearcher:
    """Refuses calls that cannot be in time, and reports how busy the shard is."""

    def __init__(
        self, inner: Searcher, most_reads: int, *, pace: Pace, clock: Clock, metrics: NodeMetrics
    ) -> None:
        """`inner` reports to `pace`. `most_reads` limits the queue of reads, and the retrievals."""
        # a node reads all hits or none: fronts choose how much is read, keep room for larger
        # questions, and leave a margin for a shard that gets more than its share of a question
        settings = LoadSettings(
            most_reads=most_reads,
            horizon=math.inf,
            usable=1.0,
            least_share=1.0,
            kept=0.0,
            hungry_for=0.0,
        )
        self._load = ReadLoad(settings, clock, lambda: pace.seconds)
        self._inner, self._pace, self._metrics = inner, pace, metrics
        self._most, self._retrieving = most_reads, 0
        metrics.seconds_per_read.set(pace.seconds or 0.0)

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns which shard this is, and how busy."""
        info = await self._inner.info(deadline)
        pace = self._pace.seconds or 0.0
        return replace(info, seconds_per_read=pace, reads_in_hand=self._load.reads)

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Retrieves; raises OverloadedError if too many retrievals are running."""
        if self._retrieving >= self._most:
            self._metrics.admission.labels("refused").inc()
            raise OverloadedError(
                f"{are(self._most, 'question')} looking for passages already; try again"
            )
        self._retrieving += 1
        try:
            return await self._inner.retrieve(question, depth, deadline)
        finally:
            self._retrieving -= 1

    async def read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Reads passages that `retrieve` named; raises OverloadedError if there is no time."""
        with self._admitted(len(hits), deadline, question.client):
            return await self._inner.read(question, hits, max_answer_tokens, deadline)

    async def search(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Retrieves and reads in one call; raises OverloadedError if there is no time."""
        with self._admitted(depth.passages, deadline, question.client):
            return await self._inner.search(question, depth, max_answer_tokens, deadline)

    @contextmanager
    def _admitted(self, reads: int, deadline: Deadline, client: str) -> Iterator[None]:
        if not self._load.reads:
            self._pace.begin()
        try:
            ticket = self._load.admit(reads, deadline.left(), client)
        except OverloadedError:
            self._metrics.admission.labels("refused").inc()
            raise
        self._metrics.admission.labels("granted").inc()
        self._metrics.reads_in_hand.set(self._load.reads)
        try:
            yield
        finally:
            self._load.release(ticket)
            self._metrics.reads_in_hand.set(self._load.reads)
            self._metrics.seconds_per_read.set(self._pace.seconds or 0.0)
