"""Searches a shard in this process."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from winnow.bundle import Bundle
from winnow.candidates.limits import CandidateLimits
from winnow.content_node.identity import shard_info
from winnow.content_node.joint_retrieval import retrieve_alone, with_queue_time
from winnow.content_node.late_interaction.scoring import LateRanking
from winnow.content_node.live.custody import OWNED, Custody
from winnow.content_node.live.sequence_waiter import SequenceWaiter
from winnow.content_node.local_shard import Retrieval, UnrankedCandidates
from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.passages.local import Admit, LocalPassages, readable
from winnow.content_node.shard.generations import RecentGenerations
from winnow.content_node.shard.retrieving import (
    FoundCandidates,
    find_candidates,
    rank_candidates,
)
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.content_node.shard.view import ShardView
from winnow.content_node.tenants import check_tenant
from winnow.content_node.validation import question_limits
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo
from winnow.domain.shard_call import Interval
from winnow.domain.tenant import own_id, stored_id, tenant_of
from winnow.errors import (
    GenerationGoneError,
    IdentityError,
    PermissionDeniedError,
    invalid_field,
)
from winnow.inference.stop_signal import StopSignal
from winnow.policy.pace import Pace
from winnow.quoting import shortened
from winnow.reading.pool import ReaderPool
from winnow.reading.reader import Reader
from winnow.reading.stored_passage import StoredPassage
from winnow.searcher import Read, Retrieved
from winnow.telemetry.tracing.span import Span, span


class LocalSearcher:
    """A `Searcher` of one shard in this process.

    It retrieves from the newest view of the shard. It reads hits from the generation that returned
    them, in a pool of threads.
    """

    def __init__(
        self,
        view: ShardView,
        reader: Reader,
        bundle: Bundle,
        pool: ReaderPool,
        *,
        pace: Pace,
        metrics: NodeMetrics,
        journaled: bool = False,
        custody: Callable[[], Custody] = lambda: OWNED,
        closed_since: Callable[[], int] = lambda: 0,
        on_drop: Callable[[], None] = lambda: None,
        admit: Admit = contextlib.nullcontext,
        late: LateRanking | None = None,
    ) -> None:
        """`pace` measures the reading speed.

        `journaled` means that the shard follows a journal. `custody` returns whether another node
        takes the writes, and `closed_since` whether the shard takes none of front nodes. `on_drop`
        is called on the event loop after a generation was dropped. `admit` admits calls for
        passages. `late` ranks by late interaction; None if the bundle has none.
        """
        self._journaled, self._custody = journaled, custody
        self._closed_since = closed_since
        self._reader, self._bundle, self._pool, self._metrics = reader, bundle, pool, metrics
        self._pace = pace
        self._limits = question_limits(bundle)
        self._word_weight, self._late = bundle.manifest.retrieval.words, late
        self._info = shard_info(view, bundle)
        self._generations = RecentGenerations(view, time.monotonic, on_drop)
        self._sequence_waiter = SequenceWaiter(view.sequence)
        has_tenants = self._info.tenants
        self.passages = LocalPassages(self._view_after, pool, admit, has_tenants=has_tenants)
        self._report_passages()

    def set_view(self, view: ShardView) -> None:
        """Makes `view` the newest one; to be called on the event loop.

        Raises:
            IdentityError: the view is of another shard or another encoder.

        """
        info = shard_info(view, self._bundle)
        if (info.index_id, info.shard) != (self._info.index_id, self._info.shard):
            raise IdentityError(
                f"the new view is of shard {info.shard} of index {info.index_id}, but this node "
                f"serves shard {self._info.shard} of index {self._info.index_id}"
            )
        self._generations.set_newest(view)
        self._sequence_waiter.advance(view.sequence)
        self._info = info
        self._report_passages()

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns the description of the shard in its newest generation."""
        deadline.check("the shard was described")
        self._generations.drop_expired()
        custody = self._custody()
        return replace(
            self._info,
            journaled=self._journaled,
            writes_elsewhere=not custody.takes_writes,
            moves=custody.moves,
            closed_since=0 if self._journaled else self._closed_since(),
            replica_closed_since=self._closed_since() if self._journaled else 0,
        )

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Retrieves the shard's passages that may be among the best of the cluster.

        Waits until the write `depth.after` is served.
        """
        retrieval = await self.prepare(question, depth, deadline)
        with span("retrieve") as step:
            work = partial(retrieve_alone, retrieval, depth)
            done = await self._pool.call(work, deadline, question.client)
            step.set("winnow.queue_ms", done.queue_seconds * 1e3)
        (found,) = done.results
        self._metrics.stage.labels("queue").observe(done.queue_seconds, step.exemplar)
        self._metrics.stage.labels("retrieve").observe(found.timings.retrieve, step.exemplar)
        return with_queue_time(found, done.queue_seconds, self._pool.idle_threads)

    async def prepare(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieval:
        """Returns the retrieval from the newest view, which runs in any thread.

        Waits until the write `depth.after` is served.
        """
        arrived_at = time.perf_counter()
        self._check_question(question)
        await self._sequence_waiter.wait(depth.after, deadline)
        view = self._generations.lease_newest(deadline)
        return partial(self._find, view, question, depth, arrived_at)

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        """Reads hits of `retrieve`, until shortly before the deadline."""
        return await self._read(question, hits, deadline, time.perf_counter())

    async def _read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        deadline: Deadline,
        arrived_at: float,
    ) -> Read:
        self._check_question(question)
        if question.tenant:
            hits = [
                replace(hit, passage_id=stored_id(question.tenant, hit.passage_id)) for hit in hits
            ]
        view, hits = await self._resolve_hits(hits, deadline, question.client)
        started = time.perf_counter()
        with span("read", {"winnow.passages": len(hits)}) as step:
            work = partial(self._read_one, view, question, arrived_at, step)
            until = deadline.before_reply()
            done = await self._pool.map(work, hits, until, self._count_read, question.client)
            step.set("winnow.queue_ms", done.queue_seconds * 1e3)
        spent = time.perf_counter() - started - done.queue_seconds
        self._metrics.stage.labels("read").observe(spent, step.exemplar)
        timings = ShardTimings(queue=done.queue_seconds, read=spent)
        return Read(tuple(done.results), timings, done.unfinished)

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        """Retrieves and reads in one call."""
        arrived_at = time.perf_counter()
        retrieved = await self.retrieve(question, depth, deadline)
        hits = retrieved.hits[: depth.passages]
        read = await self._read(question, hits, deadline, arrived_at)
        return replace(
            read,
            timings=retrieved.timings + read.timings,
            sequence=retrieved.sequence,
            retrieved=retrieved.retrieved,
            passages=retrieved.passages,
            log_id=retrieved.log_id,
        )

    def _find(
        self,
        view: ShardView,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        arrived_at: float,
        stop: StopSignal,
    ) -> UnrankedCandidates:
        began = time.perf_counter()
        with readable():
            if question.tenant:
                view = view_of_tenant(view, question.tenant)
            found = find_candidates(view, question, depth, stop)
        spent = Interval(began - arrived_at, time.perf_counter() - began)
        return _ShardCandidates(found, self._word_weight, self._late, spent)

    def _read_one(
        self,
        view: ShardView,
        question: EncodedQuestion,
        arrived_at: float,
        call_span: Span,
        hit: Hit,
        stop: StopSignal,
    ) -> Reading:
        """Reads one passage in a thread of the pool."""
        began = time.perf_counter()
        with call_span.child("read passage", {"winnow.passage_id": hit.passage_id}):
            with readable():
                stored = view.load(hit.row)
            if question.tenant:
                stored = _as_tenant_sees(stored, question.tenant, hit)
            longest = question.max_answer_tokens
            read = self._reader.read(question.token_ids, stored, hit, longest, stop)
        return replace(read, span=Interval(began - arrived_at, time.perf_counter() - began))

    def _count_read(self) -> None:
        self._metrics.passages_read.inc()
        self._pace.done(1)

    def _check_question(self, question: EncodedQuestion) -> None:
        check_tenant(question.tenant, self._info.tenants)
        encoded_by = question.bundle_fingerprint
        if encoded_by != self._info.bundle_fingerprint:
            raise IdentityError(
                f"the question was encoded by bundle {shortened(encoded_by or '(none)')}, "
                f"but shard {self._info.shard} serves {self._info.bundle_fingerprint}: start the "
                "front node and this node with the same bundle"
            )
        if len(question.vector) != self._info.dimension:
            raise IdentityError(
                f"the question's vector has {len(question.vector)} values, but shard "
                f"{self._info.shard} holds vectors of {self._info.dimension}"
            )

        self._limits.check(question)

    async def _view_after(self, sequence: int, deadline: Deadline) -> ShardView:
        await self._sequence_waiter.wait(sequence, deadline)
        return self._generations.newest

    async def _resolve_hits(
        self, hits: Sequence[Hit], deadline: Deadline, client: str
    ) -> tuple[ShardView, Sequence[Hit]]:
        """Returns the view to read from, and the hits with rows of this view."""
        generation = hits[0].generation if hits else ""
        view = self._generations.lease(generation, deadline)
        for index, hit in enumerate(hits):
            if hit.generation != generation:
                raise invalid_field(f"hits[{index}]", "is of another generation than the first hit")
        if generation not in ("", view.generation):
            done = await self._pool.call(partial(_relocate_hits, view, hits), deadline, client)
            return view, done.results[0]
        for index, hit in enumerate(hits):
            _check_row(view, hit, index)
        return view, hits

    def _report_passages(self) -> None:
        self._metrics.passages.labels(str(self._info.shard)).set(self._info.passages)


@dataclass(frozen=True, slots=True)
class _ShardCandidates:
    """The `UnrankedCandidates` of a shard in this process."""

    found: FoundCandidates
    word_weight: float
    late: LateRanking | None
    finding: Interval
    """When the candidates were found, relative to the start of the call."""

    @property
    def candidate_distances(self) -> Sequence[float]:
        return self.found.candidate_distances

    @property
    def candidate_words(self) -> Sequence[float]:
        return self.found.candidate_words

    def rank(self, limits: CandidateLimits, stop: StopSignal) -> Retrieved:
        began = time.perf_counter()
        with readable():
            ranked = rank_candidates(self.found, limits, self.word_weight, stop, self.late)
        # without the time until the other shards of the call had found their candidates
        seconds = self.finding.seconds + time.perf_counter() - began
        view, hits = self.found.view, ranked.hits
        if self.found.question.tenant:
            hits = tuple(replace(hit, passage_id=own_id(hit.passage_id)) for hit in hits)
        return Retrieved(
            hits,
            ranked.distances,
            ShardTimings(retrieve=seconds, without_tokens=ranked.without_tokens),
            candidate_words=ranked.words,
            sequence=view.sequence,
            retrieved=Interval(self.finding.start, seconds),
            passages=view.passages,
            log_id=view.log_id,
            late_interaction=ranked.late_interaction,
        )


def _as_tenant_sees(stored: StoredPassage, tenant: str, hit: Hit) -> StoredPassage:
    """Returns a passage with the id that callers use.

    Raises PermissionDeniedError if the row of the hit is of another tenant.
    """
    passage = stored.passage
    if tenant_of(passage.id) != tenant:
        raise PermissionDeniedError(f"row {hit.row} is not of the tenant of the question")
    return replace(stored, passage=replace(passage, id=own_id(passage.id)))


def _check_row(view: ShardView, hit: Hit, index: int) -> None:
    if 0 <= hit.row < view.rows:
        return
    if view.log_id:
        # the replica that returned the hit has applied more of the log
        raise GenerationGoneError(f"this replica has no row {hit.row} yet: retrieve again")
    raise invalid_field(f"hits[{index}].row", f"{hit.row} is not a row of this shard")


def _relocate_hits(view: ShardView, hits: Sequence[Hit], _: StopSignal) -> Sequence[Hit]:
    """Returns hits of another generation, with the rows that they have in this view.

    Raises:
        GenerationGoneError: a passage was removed, or this replica lacks the row yet.

    """
    with readable():
        rows = [view.find_row(hit.passage_id, hit.sequence) for hit in hits]
    found = [replace(hit, row=row) for hit, row in zip(hits, rows, strict=True) if row is not None]
    if len(found) < len(hits):
        raise GenerationGoneError(
            f"{len(hits) - len(found)} of {len(hits)} hits of another generation are not in shard "
            f"{view.manifest.shard}: retrieve again"
        )
    return found
