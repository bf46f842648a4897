"""A shard in this process, as a `Searcher`."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from content_node.identity import shard_info
from content_node.metrics import NodeMetrics
from content_node.reader.pool import ReaderPool
from content_node.reader.reader import Reader
from content_node.shard.generations import Generations
from content_node.shard.shard import Candidates, Shard
from content_node.shard.store import PassageStore
from content_node.validation import question_limits
from winnow.bundle import Bundle
from winnow.deadline import Clock, Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import Depth, EncodedQuestion
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo
from winnow.errors import (
    ArtefactError,
    IdentityError,
    InvalidRequestError,
    NotLoadedError,
    Violation,
)
from winnow.inference.stop import Stop
from winnow.policy.pace import Pace
from winnow.quoting import shortened
from winnow.searcher import Read, Retrieved

Result = TypeVar("Result")
_LONGEST_RESERVE = 0.01
"""Seconds before the caller's deadline at which reading ends. Serialising and sending a few hundred
readings takes about a millisecond, a busy event loop several; later the caller has given up, and
what was read is lost.
"""
_RESERVED = 0.1
"""Share of the time left that is kept for that, where it is less."""


class LocalSearcher:
    """Retrieves by the newest index of a shard, and reads with a pool of threads from the one that
    the hits are of.
    """

    def __init__(
        self,
        shard: Shard,
        reader: Reader,
        bundle: Bundle,
        pool: ReaderPool,
        pace: Pace,
        metrics: NodeMetrics,
        clock: Clock = time.monotonic,
    ) -> None:
        """`pace` is told of every passage that was read."""
        self._reader, self._bundle, self._pool, self._metrics = reader, bundle, pool, metrics
        self._pace = pace
        self._limits = question_limits(bundle)
        self._word_weight = bundle.manifest.retrieval.words
        self._info = shard_info(shard, bundle)
        self._generations = Generations(shard, clock)
        self._count_passages()

    def serve(self, shard: Shard) -> None:
        """From now on the newest generation is `shard`; to be called on the event loop.

        Raises:
            IdentityError: it is another shard, or another encoder's.

        """
        info = shard_info(shard, self._bundle)
        if (info.index_id, info.shard) != (self._info.index_id, self._info.shard):
            raise IdentityError(
                f"shard {info.shard} of index {info.index_id} is no generation of shard "
                f"{self._info.shard} of index {self._info.index_id}, which this node serves"
            )
        self._generations.serve(shard)
        self._info = info
        self._count_passages()

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Which shard this is, in its newest generation."""
        deadline.check("telling about the shard")
        self._generations.let_go()
        return self._info

    async def retrieve(
        self, question: EncodedQuestion, depth: Depth, deadline: Deadline
    ) -> Retrieved:
        """What may be among the passages to be read, of all candidates of all shards."""
        self._check(question)
        work = partial(self._retrieve, self._generations.lease(deadline), question, depth)
        done = await self._pool.call(partial(_timed, work), deadline, question.client)
        found, spent = done.results[0]
        self._metrics.stage.labels("queue").observe(done.queued)
        self._metrics.stage.labels("retrieve").observe(spent)
        timings = ShardTimings(queue=done.queued, retrieve=spent)
        return Retrieved(found.hits, found.distances, timings, self._pool.idle)

    async def read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Reads passages that `retrieve` named: as many as can be, a little before the deadline."""
        self._check(question)
        shard = self._shard_of(hits, deadline)
        started = time.perf_counter()
        work = partial(self._read_one, shard.store, question, max_answer_tokens)
        until, client = _before(deadline), question.client
        done = await self._pool.map(work, hits, until, self._count_read, client)
        spent = time.perf_counter() - started - done.queued
        self._metrics.stage.labels("read").observe(spent)
        timings = ShardTimings(queue=done.queued, read=spent)
        return Read(tuple(done.results), timings, done.left)

    async def search(
        self, question: EncodedQuestion, depth: Depth, max_answer_tokens: int, deadline: Deadline
    ) -> Read:
        """Retrieves and reads at once."""
        retrieved = await self.retrieve(question, depth, deadline)
        hits = retrieved.hits[: depth.passages]
        read = await self.read(question, hits, max_answer_tokens, deadline)
        return Read(read.readings, retrieved.timings + read.timings, read.unread)

    def _retrieve(
        self, shard: Shard, question: EncodedQuestion, depth: Depth, stop: Stop
    ) -> Candidates:
        with _readable():
            return shard.retrieve(question, depth, self._word_weight, stop)

    def _read_one(
        self,
        store: PassageStore,
        question: EncodedQuestion,
        max_answer_tokens: int,
        hit: Hit,
        stop: Stop,
    ) -> Reading:
        with _readable():
            stored = store.load([hit.row])[0]
        return self._reader.read(question.token_ids, stored, hit, max_answer_tokens, stop)

    def _count_read(self) -> None:
        self._metrics.passages_read.inc()
        self._pace.done(1)

    def _check(self, question: EncodedQuestion) -> None:
        encoded_by = question.bundle_fingerprint
        if encoded_by != self._info.bundle_fingerprint:
            raise IdentityError(
                f"the question was encoded by bundle {shortened(encoded_by or '(none)')}, "
                f"shard {self._info.shard} serves {self._info.bundle_fingerprint}: start both "
                "with the same bundle"
            )
        if len(question.vector) != self._info.dimension:
            raise IdentityError(
                f"the question's vector has {len(question.vector)} values, shard "
                f"{self._info.shard} holds vectors of {self._info.dimension}"
            )

        self._limits.check(question)

    def _shard_of(self, hits: Sequence[Hit], deadline: Deadline) -> Shard:
        """The generation that all hits are rows of."""
        generation = hits[0].generation if hits else ""
        shard = self._generations.named(generation, deadline)
        for place, hit in enumerate(hits):
            if hit.generation != generation:
                raise InvalidRequestError(
                    Violation(f"hits[{place}]", "is of another generation than the first")
                )
            if not 0 <= hit.row < shard.manifest.passages:
                raise InvalidRequestError(
                    Violation(f"hits[{place}].row", f"{hit.row} is not a row of this shard")
                )
        return shard

    def _count_passages(self) -> None:
        self._metrics.index.labels(str(self._info.shard)).set(self._info.passages)


def _before(deadline: Deadline) -> Deadline:
    """When to stop reading so that the caller still gets what was read."""
    return deadline.earlier(max(min(_LONGEST_RESERVE, deadline.left() * _RESERVED), 0.0))


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """A shard whose files changed under it is none: other replicas may be asked."""
    try:
        yield
    except ArtefactError as error:
        raise NotLoadedError(str(error)) from error


def _timed(work: Callable[[Stop], Result], stop: Stop) -> tuple[Result, float]:
    started = time.perf_counter()
    return work(stop), time.perf_counter() - started
