"""A shard in this process, as a `Searcher`."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from content_node.metrics import NodeMetrics
from content_node.reader.pool import ReaderPool
from content_node.reader.reader import Reader
from content_node.shard.shard import Candidates, Shard
from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import Depth, EncodedQuestion
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo
from winnow.errors import GenerationGoneError, IdentityError, InvalidRequestError, Violation
from winnow.inference.stop import Stop
from winnow.policy.pace import Pace
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
    """Retrieves by a shard's index and reads with a pool of threads."""

    def __init__(
        self,
        shard: Shard,
        reader: Reader,
        bundle: Bundle,
        pool: ReaderPool,
        pace: Pace,
        metrics: NodeMetrics,
    ) -> None:
        """`pace` is told of every passage that was read."""
        self._shard, self._reader, self._pool, self._metrics = shard, reader, pool, metrics
        self._pace = pace
        self._word_weight = bundle.manifest.retrieval.words
        self._info = shard_info(shard, bundle)
        metrics.index.labels(str(self._info.shard)).set(self._info.passages)

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Which shard this is."""
        deadline.check("telling about the shard")
        return self._info

    async def retrieve(
        self, question: EncodedQuestion, depth: Depth, deadline: Deadline
    ) -> Retrieved:
        """What may be among the passages to be read, of all candidates of all shards."""
        self._check(question)
        work = partial(self._retrieve, question, depth)
        done = await self._pool.call(partial(_timed, work), deadline)
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
        self._check_rows(hits)
        started = time.perf_counter()
        work = partial(self._read_one, question, max_answer_tokens)
        done = await self._pool.map(work, hits, _before(deadline), self._count_read)
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

    def _retrieve(self, question: EncodedQuestion, depth: Depth, stop: Stop) -> Candidates:
        return self._shard.retrieve(question, depth, self._word_weight, stop)

    def _read_one(
        self, question: EncodedQuestion, max_answer_tokens: int, hit: Hit, stop: Stop
    ) -> Reading:
        stored = self._shard.store.load([hit.row])[0]
        return self._reader.read(question.token_ids, stored, hit, max_answer_tokens, stop)

    def _count_read(self) -> None:
        self._metrics.passages_read.inc()
        self._pace.done(1)

    def _check(self, question: EncodedQuestion) -> None:
        if question.bundle_fingerprint != self._info.bundle_fingerprint:
            raise IdentityError(
                f"the question was encoded by bundle {question.bundle_fingerprint or '(none)'}, "
                f"shard {self._info.shard} serves {self._info.bundle_fingerprint}: start both "
                "with the same bundle"
            )
        if len(question.vector) != self._info.dimension:
            raise IdentityError(
                f"the question's vector has {len(question.vector)} values, shard "
                f"{self._info.shard} holds vectors of {self._info.dimension}"
            )

    def _check_rows(self, hits: Sequence[Hit]) -> None:
        for place, hit in enumerate(hits):
            if hit.generation not in ("", self._info.generation):
                raise GenerationGoneError(
                    f"hits[{place}] is a row of generation {hit.generation}, shard "
                    f"{self._info.shard} serves {self._info.generation}: retrieve again"
                )
            if not 0 <= hit.row < self._info.passages:
                raise InvalidRequestError(
                    Violation(f"hits[{place}].row", f"{hit.row} is not a row of this shard")
                )


def shard_info(shard: Shard, bundle: Bundle) -> ShardInfo:
    """What a shard says of itself when it serves a bundle.

    Raises:
        IdentityError: the shard's vectors were made by another encoder, or cannot have been made
            by this one.

    """
    manifest, served = shard.manifest, bundle.manifest
    if manifest.encoding_fingerprint != served.encoding_fingerprint:
        raise IdentityError(
            f"shard {manifest.shard} was encoded by bundle {manifest.bundle_name} "
            f"({manifest.encoding_fingerprint}), this node has {served.name} "
            f"({served.encoding_fingerprint}): serve the bundle it was built with, or build again"
        )
    if manifest.dimension != served.encoder.dimension:
        # hnswlib would take it as it is, and compare vectors with what lies beside them
        raise IdentityError(
            f"shard {manifest.shard} says that its vectors have {manifest.dimension} values, those "
            f"of bundle {served.name} have {served.encoder.dimension}: its manifest was altered; "
            "copy it again, or build again"
        )
    return ShardInfo(
        manifest.shard,
        manifest.shards,
        manifest.index_id,
        manifest.passages,
        manifest.dimension,
        served.name,
        served.fingerprint,
        manifest.generation,
        manifest.index_passages,
    )


def _before(deadline: Deadline) -> Deadline:
    """When to stop reading so that the caller still gets what was read."""
    return deadline.earlier(max(min(_LONGEST_RESERVE, deadline.left() * _RESERVED), 0.0))


def _timed(work: Callable[[Stop], Result], stop: Stop) -> tuple[Result, float]:
    started = time.perf_counter()
    return work(stop), time.perf_counter() - started
