"""Admission control of a content node: refuses calls that would miss their deadline.

The load is the number of passages that wait to be read or are being read. Clients take turns,
and the expected time of a call includes the turns of others. A call is refused at once, so that the
front node has time to call another replica. Retrieval is cheap and never waits for reading, so only
the number of concurrent retrievals is limited.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from winnow.content_node.local_shard import LocalShard, Retrieval
from winnow.content_node.metrics import NodeMetrics
from winnow.deadline import Clock, Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.errors import OverloadedError
from winnow.passage_source import PassageSource
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.policy.pace import Pace
from winnow.quoting import are
from winnow.searcher import Read, Retrieved


class NodeLoad:
    """The load of all shards of a process, which share one pool of reader threads."""

    def __init__(
        self, max_reads: int, *, pace: Pace, clock: Clock, metrics: NodeMetrics, shards: int = 1
    ) -> None:
        """`max_reads` limits the queued reads and the running retrievals.

        `pace` measures the reading speed.
        """
        # a node reads all hits of a call or none: front nodes read fewer passages under load, keep
        # capacity for larger questions, and allow for shards that get more hits than others
        settings = LoadSettings.all_or_nothing(max_reads)
        self._load = ReadLoad(settings, clock, lambda: pace.seconds)
        self._pace, self._metrics, self._shards = pace, metrics, shards
        self._max_reads, self._retrieving = max_reads, 0
        # read at each scrape, since the pace is estimated only when a shard is loaded
        metrics.seconds_per_read.set_function(lambda: pace.seconds or 0.0)

    def set_shards(self, shards: int) -> None:
        """Sets the number of shards that share the reader."""
        self._shards = max(shards, 1)

    def of_index(self) -> "NodeLoad":
        """Returns the load for another index of the process, whose shards are counted apart.

        A question reads only shards of its index. The reads of all indexes are counted together.
        """
        load = copy.copy(self)
        load._shards, load._retrieving = 1, 0  # noqa: SLF001 (of the same class)
        return load

    @property
    def seconds_per_read(self) -> float:
        """Seconds per passage of one shard while all shards are read; 0 before a measurement."""
        return (self._pace.seconds or 0.0) * self._shards

    @property
    def reads_in_flight(self) -> int:
        """Passages that wait to be read or are being read."""
        return self._load.reads_in_flight

    @contextmanager
    def admit_retrieval(self) -> Iterator[None]:
        """Admits a retrieval; raises OverloadedError if too many are running."""
        if self._retrieving >= self._max_reads:
            self._metrics.admission.labels("refused").inc()
            raise OverloadedError(
                f"{are(self._max_reads, 'retrieval')} running, which is the limit: try again"
            )
        self._retrieving += 1
        try:
            yield
        finally:
            self._retrieving -= 1

    @contextmanager
    def admit_read(self, passages: int, deadline: Deadline, client: str) -> Iterator[None]:
        """Admits passages to read; raises OverloadedError if there is no time for them."""
        if not self._load.reads_in_flight:
            self._pace.begin()
        try:
            ticket = self._load.admit(passages, deadline.left(), client)
        except OverloadedError:
            self._metrics.admission.labels("refused").inc()
            raise
        self._metrics.admission.labels("granted").inc()
        self._metrics.reads_in_hand.set(self._load.reads_in_flight)
        try:
            yield
        finally:
            self._load.release(ticket)
            self._metrics.reads_in_hand.set(self._load.reads_in_flight)


class AdmittedSearcher:
    """A `LocalShard` that refuses calls which would miss their deadline, and reports the load."""

    def __init__(self, inner: LocalShard, load: NodeLoad) -> None:
        self._inner, self._load = inner, load

    @property
    def passages(self) -> PassageSource:
        """The passages of the shard, whose calls are admitted by `inner`."""
        return self._inner.passages

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns the description of the shard, with the load of the node."""
        info = await self._inner.info(deadline)
        load = self._load
        return replace(
            info, seconds_per_read=load.seconds_per_read, reads_in_hand=load.reads_in_flight
        )

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Retrieves; raises OverloadedError if too many retrievals are running."""
        with self._load.admit_retrieval():
            return await self._inner.retrieve(question, depth, deadline)

    async def prepare(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieval:
        """Prepares a retrieval; `JointRetrieval` admits the call once for all its shards."""
        return await self._inner.prepare(question, depth, deadline)

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        """Reads hits of `retrieve`; raises OverloadedError if there is no time."""
        with self._load.admit_read(len(hits), deadline, question.client):
            return await self._inner.read(question, hits, deadline)

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        """Retrieves and reads in one call; raises OverloadedError if there is no time."""
        with self._load.admit_read(depth.passages, deadline, question.client):
            return await self._inner.search(question, depth, deadline)
