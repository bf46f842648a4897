"""Fake shards, encoders and heads, which can fail or hang.

Each keeps the contract of its interface. Each call yields to the event loop once, as a real call
does, because a reply without a pause hides races.
"""

import asyncio
import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from fake_passages import FakePassages
from prometheus_client import CollectorRegistry
from tenacious import turn

from winnow.candidates.limits import CandidateLimits
from winnow.content_node.admission import NodeLoad
from winnow.content_node.joint_retrieval import JointRetrieval
from winnow.content_node.local_shard import Retrieval
from winnow.content_node.metrics import NodeMetrics
from winnow.deadline import Deadline
from winnow.domain.answered import Answered, ShardTimings, Timings
from winnow.domain.coverage import Coverage
from winnow.domain.passage import Hit, Passage
from winnow.domain.prediction import (
    Applied,
    LabelScore,
    Prediction,
    SequencePrediction,
    TokenPrediction,
    TokenSpan,
)
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import NodeReport, ShardFault, ShardInfo
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import EncodedPassage, Outcome, Write, WriteAttempt, Written
from winnow.errors import GenerationGoneError, NotFoundError, NotLoadedError, WinnowError
from winnow.heads.heads import States
from winnow.inference.stop_signal import StopSignal
from winnow.passages.canonical import PassageDigest, digest
from winnow.policy.pace import Pace
from winnow.reading.pool import ReaderPool
from winnow.searcher import Read, RequestedShard, Retrieved, Searcher
from winnow.stateless.answer.admission import AdmittedQuestion
from winnow.text.encoder import OnEncoded, TextEncoding

FINGERPRINT = "fake-bundle"
ENCODED = EncodedQuestion(
    text="who",
    token_ids=(1,),
    vector=np.array([1, 0], dtype=np.float32),
    bundle_fingerprint=FINGERPRINT,
)


def nothing_found(admitted: AdmittedQuestion) -> Answered:
    """Returns the result of a question that no passage answers."""
    return Answered(
        answers=(),
        has_answer=False,
        coverage=Coverage(()),
        timings=Timings(),
        passages_asked=admitted.requested_reads,
        passages_granted=admitted.granted_reads,
        passages_read=0,
        passages_needed=0,
        read_scope=admitted.question.read_scope,
        question_truncated=False,
    )


def shard_info(shard: int = 0, shards: int = 2, **fields: Any) -> ShardInfo:
    """Returns what a node says of a shard of ten passages, except for the given fields."""
    info = ShardInfo(
        shard=shard,
        shards=shards,
        index_id="index",
        passages=10,
        dimension=2,
        bundle_name="fake",
        bundle_fingerprint=FINGERPRINT,
    )
    return replace(info, **fields)


def fake_infos(shards: int) -> dict[int, ShardInfo]:
    """Returns the infos of shards with 10, 20, 30 … passages."""
    return {n: shard_info(n, shards, index_id="i", passages=10 * (n + 1)) for n in range(shards)}


@dataclass(frozen=True)
class FoundBefore:
    """Candidates of a shard whose ranking is known."""

    ranked: Retrieved

    @property
    def candidate_distances(self) -> Sequence[float]:
        return self.ranked.candidate_distances

    @property
    def candidate_words(self) -> Sequence[float]:
        return self.ranked.candidate_words

    def rank(self, _limits: CandidateLimits, _stop: StopSignal) -> Retrieved:
        return self.ranked


@dataclass
class FakeSearcher:
    """A shard with given readings, which can fail or hang."""

    readings: Sequence[Reading]
    shard: int = 0
    shards: int = 1
    index_id: str = "fake-index"
    bundle_fingerprint: str = FINGERPRINT
    dimension: int = 2
    generation: str = ""
    """Generation of the rows; hits of other generations are refused."""
    next_generations: list[tuple[str, Sequence[Reading]]] = field(default_factory=list)
    """Later generations and their readings; each retrieval switches to the next one."""
    fails: Exception | None = None
    """Raised by every call."""
    fails_reading: WinnowError | None = None
    """Raised by `read` and `search` only."""
    reads_before_failing: int = 0
    """Calls of `read` that succeed before one fails or hangs."""
    failures_left: int = -1
    """Number of times that `fails_reading` is raised; unlimited if negative."""
    reads_in_time: int | None = None
    """Passages that each call reads before its deadline; the others stay unread."""
    hangs_reading: bool = False
    """Makes `read` and `search` wait until they are cancelled, or `go_on` is set."""
    hangs: bool = False
    """Makes every call wait until it is cancelled, or `go_on` is set."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a call hangs."""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a hanging call was cancelled."""
    calls: int = 0
    read_rows: list[int] = field(default_factory=list)
    idle: int = 0
    """Number of idle readers that it reports."""
    depths: list[RetrievalDepth] = field(default_factory=list)
    """The depth of each retrieval."""
    clients: list[str] = field(default_factory=list)
    """The client of each call."""
    passages: FakePassages = field(default_factory=FakePassages)

    async def info(self, deadline: Deadline) -> ShardInfo:
        await self._behave()
        return ShardInfo(
            shard=self.shard,
            shards=self.shards,
            index_id=self.index_id,
            passages=len(self.readings),
            dimension=self.dimension,
            bundle_name="fake",
            bundle_fingerprint=self.bundle_fingerprint,
            generation=self.generation,
        )

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        self.clients.append(question.client)
        await self._behave()
        self.depths.append(depth)
        near = sorted(range(len(self.readings)), key=lambda row: self.readings[row].distance)
        best = sorted(range(len(self.readings)), key=lambda row: -self.readings[row].words)
        found = (best if depth.is_by_words_only else near)[: depth.passages]
        hits = tuple(self._hit(row, depth.is_by_words_only) for row in found)
        distances = tuple(self.readings[row].distance for row in near[: depth.nearest_candidates])
        words = tuple(self.readings[row].words for row in best[: depth.word_candidates])
        if self.next_generations:
            self.generation, self.readings = self.next_generations.pop(0)
        return Retrieved(
            hits,
            distances,
            ShardTimings(retrieve=0.001),
            idle_readers=self.idle,
            candidate_words=words,
        )

    async def prepare(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieval:
        found = await self.retrieve(question, depth, deadline)
        return lambda _stop: FoundBefore(found)

    def _hit(self, row: int, is_by_words_only: bool) -> Hit:
        reading, generation = self.readings[row], self.generation
        order = -reading.words if is_by_words_only else reading.distance
        return Hit(
            row=row,
            passage_id=reading.passage.id,
            distance=reading.distance,
            hybrid_distance=order,
            generation=generation,
            words=reading.words,
        )

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        self.clients.append(question.client)
        await self._behave()
        await self._behave_reading()
        if any(hit.generation not in ("", self.generation) for hit in hits):
            raise GenerationGoneError(f"shard {self.shard} serves {self.generation}")
        read = hits[: self.reads_in_time]
        self.read_rows += [hit.row for hit in read]
        readings = tuple(self.readings[hit.row] for hit in read)
        return Read(readings, ShardTimings(read=0.002), len(hits) - len(read))

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        found = await self.retrieve(question, depth, deadline)
        return await self.read(question, found.hits, deadline)

    async def _behave(self) -> None:
        self.calls += 1
        try:
            await turn()
        except asyncio.CancelledError:
            if self.hangs:  # given up before it could hang
                self.released.set()
            raise
        if self.fails is not None:
            raise self.fails
        if self.hangs:
            await _hang(self.hanging, self.released, self.go_on)

    async def _behave_reading(self) -> None:
        if self.reads_before_failing:
            self.reads_before_failing -= 1
        elif self.hangs_reading:
            await _hang(self.hanging, self.released, self.go_on)
        elif self.fails_reading is not None and self.failures_left:
            self.failures_left -= 1
            raise self.fails_reading


def reading(
    identifier: str, score: float = 0.0, distance: float = 1.0, text: str = "some words"
) -> Reading:
    """Returns a reading of a passage whose first word is the answer."""
    end = text.index(" ") if " " in text else len(text)
    passage = Passage(identifier, "Title", text)
    return Reading(
        passage=passage,
        start=0,
        end=end,
        score=score,
        relevance=score,
        span_score=1.0,
        distance=distance,
        hybrid_distance=distance,
    )


@dataclass
class OneShardNode:
    """A content node with one shard; any number stands for it."""

    shard: Searcher

    async def report(self, deadline: Deadline) -> NodeReport:
        try:
            return NodeReport((await self.shard.info(deadline),))
        except NotLoadedError as error:
            return NodeReport(faults=(ShardFault(None, error),))

    def searcher(self, _shard: int | None) -> Searcher:
        return self.shard

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | Exception]:
        ((_, after),) = shards
        try:
            own = replace(depth, after=after)
            return [await self.shard.retrieve(question, own, deadline)]
        except Exception as error:  # noqa: BLE001 (as a node does)
            return [error]


@functools.cache
def joint_retrieval() -> JointRetrieval:
    """Returns how a node with one thread retrieves from several shards."""
    metrics = NodeMetrics(CollectorRegistry())
    pool = ReaderPool(1, 1, metrics)
    pace = Pace(1.0, time.monotonic)
    load = NodeLoad(100, pace=pace, clock=time.monotonic, metrics=metrics)
    return JointRetrieval(pool, load, metrics)


@dataclass
class FakeShardWriter:
    """A shard that stores writes in dictionaries, and can fail or hang."""

    fails: WinnowError | None = None
    """Raised by every write."""
    failures_left: int = -1
    """Number of times that `fails` is raised; unlimited if negative."""
    stored_first: int = 0
    """Number of calls that succeed before `fails` is raised."""
    stores_before_failing: bool = False
    """Whether a failing call stores its writes first, as if only its reply were lost."""
    hangs: bool = False
    """Makes writes wait until they are cancelled, or `go_on` is set."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a hanging call was cancelled."""
    passages: dict[str, EncodedPassage] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    """Versions of passages and deletions by id."""
    batches: list[tuple[str, ...]] = field(default_factory=list)
    """The ids of each write call."""
    deadlines: list[Deadline] = field(default_factory=list)
    attempts: list[WriteAttempt | None] = field(default_factory=list)
    compared: list[tuple[str, ...]] = field(default_factory=list)
    """The ids of each call of `find_unchanged`."""
    compared_until: list[Deadline] = field(default_factory=list)
    """The deadline of each call of `find_unchanged`."""
    fails_to_compare: WinnowError | None = None
    """Raised by each call of `find_unchanged`."""
    sequence: int = 0

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        self.batches.append(tuple(each.id for each in writes))
        self.deadlines.append(deadline)
        self.attempts.append(attempt)
        await turn()
        if self.hangs:
            await _hang(self.hanging, self.released, self.go_on)
        first = len(self.batches) <= self.stored_first
        fails = self.fails is not None and self.failures_left != 0 and not first
        found = [] if fails and not self.stores_before_failing else list(map(self._apply, writes))
        if fails and self.fails is not None:
            self.failures_left -= 1
            raise self.fails
        return found

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        self.compared.append(tuple(each.id for each in puts))
        self.compared_until.append(deadline)
        await turn()
        if self.fails_to_compare is not None:
            raise self.fails_to_compare
        return list(map(self._compare, puts))

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        return WordCounts(np.zeros(1, np.uint32), 0)

    async def changes(self, deadline: Deadline) -> WordChanges:
        return WordChanges(
            sequence=self.sequence,
            ids=np.zeros(0, np.uint32),
            by=np.zeros(0, np.int32),
            passages=0,
            tokens=0,
        )

    def _compare(self, put: PassageDigest) -> Written | None:
        stored = self.passages.get(put.id)
        is_same = stored is not None and digest(stored.passage) == put.digest
        return self._refusal(put.id, put.version, is_same)

    def _refusal(self, identifier: str, version: int | None, is_same: bool) -> Written | None:
        """Returns the outcome of a write that changes nothing, or None."""
        known = self.versions.get(identifier)
        if version is not None and known is not None and known > version:
            return Written(Outcome.OUTDATED, self.sequence)
        unchanged = is_same and version in (None, known)
        return Written(Outcome.UNCHANGED, self.sequence) if unchanged else None

    def _apply(self, write: Write) -> Written:
        stored, put = self.passages.get(write.id), write.put
        is_same = stored.passage == put.passage if stored and put else stored is put
        if refusal := self._refusal(write.id, write.version, is_same):
            return refusal
        if write.put is None:
            self.passages.pop(write.id, None)
        else:
            self.passages[write.id] = write.put
        self.versions.pop(write.id, None)
        if write.version is not None:
            self.versions[write.id] = write.version
        self.sequence += 1
        return Written(Outcome.STORED, self.sequence)


@dataclass
class FakeTextEncoder:
    """Encodes by arithmetic: a state depends only on its token id."""

    width: int = 4
    fails: WinnowError | None = None
    """Raised for every text."""
    fails_for: int = -1
    """First token of the texts for which `fails` is raised; every text if negative."""
    hangs: bool = False
    """Makes calls wait until they are cancelled."""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a hanging call was cancelled."""
    encoded: list[tuple[int, ...]] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    longest: int = 0
    """The longest text of the last warm-up, in tokens."""
    closed: bool = False

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        self.encoded.append(tuple(ids))
        self.clients.append(client)
        await turn()
        if self.fails is not None and self.fails_for in (-1, ids[0]):
            raise self.fails
        if self.hangs:
            await _hang(self.hanging, self.released)
        rows = np.array([1, *ids, 2], np.float32)[:, None] * np.arange(1, self.width + 1)
        states = np.sin(rows).astype(np.float16)
        return TextEncoding(np.eye(1, 2, dtype=np.float32)[0], states, 0.001, 0.002)

    async def warm_up(self, longest: int) -> None:
        self.longest = longest

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeHeads:
    """Heads whose scores follow from the states of a text; some fail, hang or have moved."""

    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The labels of each sequence head, by head id."""
    spans: dict[str, tuple[TokenSpan, ...]] = field(default_factory=dict)
    """The spans that each token head finds in every text, by head id."""
    failing: dict[str, WinnowError] = field(default_factory=dict)
    """The error of each failing head, by head id."""
    moved: dict[str, str] = field(default_factory=dict)
    """The new encoder group of each moved head, by head id."""
    version: int = 1
    fails: Exception | None = None
    """Raised by every call."""
    hangs: bool = False
    """Makes calls wait until they are cancelled."""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a hanging call was cancelled."""
    applied: list[tuple[str, ...]] = field(default_factory=list)
    """The ids of each call."""
    clients: list[str] = field(default_factory=list)
    deadlines: list[Deadline] = field(default_factory=list)

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        self.applied.append(tuple(head_ids))
        self.clients.append(client)
        self.deadlines.append(deadline)
        await turn()
        if self.fails is not None:
            raise self.fails
        if self.hangs:
            await _hang(self.hanging, self.released)
        return [self._one(states, each) for each in head_ids]

    def _one(self, states: States, head: str) -> Applied:
        unknown = None if head in {*self.labels, *self.spans} else NotFoundError(f"no head {head}")
        moved = self.moved.get(head, "")
        if failure := self.failing.get(head, unknown):
            return Applied(head=head, version=0, failure=failure, moved_to=moved)
        return Applied(
            head=head,
            version=self.version,
            prediction=self._prediction(states, head),
            moved_to=moved,
        )

    def _prediction(self, states: States, head: str) -> Prediction:
        if head in self.spans:
            return TokenPrediction(self.spans[head])
        logits = states.astype(np.float32).mean(axis=0)[: len(self.labels[head])]
        scores = np.exp(logits) / np.exp(logits).sum()
        ranked = sorted(zip(scores.tolist(), self.labels[head], strict=True), reverse=True)
        return SequencePrediction(
            tuple(LabelScore(label, score, not n) for n, (score, label) in enumerate(ranked))
        )


async def _hang(
    hanging: asyncio.Event, released: asyncio.Event, go_on: asyncio.Event | None = None
) -> None:
    """Waits until `go_on` is set, or until it is cancelled; then it sets `released`."""
    hanging.set()
    try:
        await (go_on or asyncio.Event()).wait()
    except asyncio.CancelledError:
        released.set()
        raise
