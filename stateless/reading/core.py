"""The reading core: reads, reranks and highlights texts that callers send.

The core knows neither gRPC nor HTTP. Both convert a request, call a method and convert the result.
"""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from winnow import caller
from winnow.deadline import Deadline
from winnow.domain.text_reading import (
    HighlightedText,
    HighlightTextRequest,
    RankedTexts,
    ReadingReport,
    ReadingTimings,
    ReadTextsRequest,
    RerankTextsRequest,
    TextReading,
    TextReadings,
    TextToRead,
)
from winnow.errors import DeadlineExceededError, UnavailableError
from winnow.inference.stop_signal import StopSignal
from winnow.quoting import many
from winnow.reading.pool import ReaderPool
from winnow.reading.reader import Reader
from winnow.reading.window_reading import WindowReading
from winnow.stateless.reading.admission import ReadingAdmission
from winnow.stateless.reading.highlighting import SentenceReading, highlighted, sentences_within
from winnow.stateless.reading.merging import best_readings, ranked_texts, text_reading
from winnow.stateless.reading.metrics import TextReadingMetrics
from winnow.stateless.reading.question import QuestionTokeniser, TokenisedQuery
from winnow.stateless.reading.scoring import (
    ASSUMED_DISTANCE,
    TextScores,
    WindowRelevance,
    best_odds,
    relevance_score,
)
from winnow.stateless.reading.tokenising import (
    TextSegment,
    TokenisedText,
    batches,
    joined,
    parts_of_texts,
    tokenise_batch,
)
from winnow.stateless.reading.validation import (
    ReadingDefaults,
    checked_highlight,
    checked_read,
    checked_rerank,
)
from winnow.stateless.reading.windows import TextWindow, estimated_windows, windows_of
from winnow.telemetry.tracing.span import span
from winnow.text.surroundings import all_sentences
from winnow.text.tokenizer import Tokenizer, Tokens

_BRIEF_TEXTS = 16
"""Maximum number of windows that are prepared and merged on the event loop. More take longer than
half a millisecond, and are left to a thread.
"""
_NOTHING = WindowReading(
    start=0,
    end=0,
    score=float("-inf"),
    relevance=float("-inf"),
    span_score=float("-inf"),
    distance=ASSUMED_DISTANCE,
)
"""The reading of a text without words."""
Result = TypeVar("Result")
Read = Callable[[TextWindow, StopSignal], Result]
"""Reads a window in a thread."""


@dataclass(frozen=True, slots=True)
class LoadedReader:
    """The reader of a bundle, and its tokenizer."""

    reader: Reader
    tokenizer: Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingBundle:
    """The figures of a bundle on which readings depend."""

    model: str
    """Name and version of the bundle."""
    scores: TextScores
    defaults: ReadingDefaults


@dataclass(slots=True, kw_only=True)
class _Job:
    """A request that was admitted and tokenised."""

    question: TokenisedQuery
    texts: Sequence[TokenisedText]
    windows: Sequence[TextWindow]
    reader: Reader
    timings: ReadingTimings
    deadline: Deadline
    client: str
    started: float
    release: Callable[[], None]
    """Ends the admission, before the context of the request ends; may be called twice."""


class ReadCore:
    """A `TextReader` in this process. Before the reader is loaded it refuses all requests."""

    def __init__(
        self,
        bundle: ReadingBundle,
        pool: ReaderPool,
        question: QuestionTokeniser,
        *,
        admission: ReadingAdmission,
        metrics: TextReadingMetrics,
    ) -> None:
        """`pool` reads the windows, and `question` divides questions into tokens."""
        self._bundle, self._pool, self._question = bundle, pool, question
        self._admission, self._metrics = admission, metrics
        self._loaded: LoadedReader | None = None

    def set_reader(self, loaded: LoadedReader) -> None:
        """Makes all later requests use this reader."""
        self._loaded = loaded

    async def read(
        self, request: ReadTextsRequest, deadline: Deadline, client: str = ""
    ) -> TextReadings:
        """Returns the best span of each text."""
        options = checked_read(request, self._bundle.defaults)
        async with self._admitted(request.question, request.texts, deadline, client) as job:
            work = partial(_read, job, options.max_answer_tokens)
            found = await self._run(job, work)
            merge = partial(self._merge, job, found)
            readings = await self._run_briefly(job, len(job.windows), merge)
            best = best_readings(readings, options.answers)
            return TextReadings(
                readings=tuple(readings),
                best=best,
                has_answer=self._has_answer(
                    readings[best[0]] if best else None, options.min_confidence
                ),
                report=self._report(job, sum(each.windows_remembered for each in readings)),
            )

    async def stream(
        self, request: ReadTextsRequest, deadline: Deadline, client: str = ""
    ) -> AsyncGenerator[TextReading, None]:
        """Yields the best span of each text as soon as the text was read, in any order."""
        options = checked_read(request, self._bundle.defaults)
        async with self._admitted(request.question, request.texts, deadline, client) as job:
            windows = Counter(window.index for window in job.windows)
            read: dict[int, list[tuple[TextWindow, WindowReading]]] = defaultdict(list)
            work = partial(_read, job, options.max_answer_tokens)
            async with aclosing(self._as_read(job, work)) as results:
                async for window, reading in results:
                    own = read[window.index]
                    own.append((window, reading))
                    if len(own) == windows[window.index]:
                        yield self._merge_one(job, window.index, read.pop(window.index))
            self._metrics.observe(job.timings)

    async def rerank(
        self, request: RerankTextsRequest, deadline: Deadline, client: str = ""
    ) -> RankedTexts:
        """Orders texts by their relevance to the question."""
        top_n = checked_rerank(request)
        async with self._admitted(request.question, request.texts, deadline, client) as job:
            found = await self._run(job, partial(_relevance, job))

            def merge() -> RankedTexts:
                windows: dict[int, list[WindowRelevance]] = defaultdict(list)
                for window, own in zip(job.windows, found, strict=True):
                    windows[window.index] += own
                remembered = sum(each.remembered for own in found for each in own)
                return RankedTexts(
                    results=ranked_texts(
                        request.texts, windows, self._bundle.scores.relevance, top_n
                    ),
                    report=self._report(job, remembered),
                )

            return await self._run_briefly(job, len(job.windows), merge)

    async def highlight(
        self, request: HighlightTextRequest, deadline: Deadline, client: str = ""
    ) -> HighlightedText:
        """Returns the sentences of a text that answer the question."""
        options = checked_highlight(request, self._bundle.defaults)
        text = request.text.text
        async with self._admitted(request.question, [request.text], deadline, client) as job:
            sentences = await self._run_briefly(
                job, len(job.windows) + _BRIEF_TEXTS, partial(all_sentences, text)
            )

            def read(window: TextWindow, stop: StopSignal) -> list[SentenceReading]:
                end = window.start + len(window.passage.passage.text)
                numbered = sentences_within(sentences, (window.start, end))
                readings = job.reader.read_sentences(
                    job.question.ids,
                    window.passage,
                    [own for _, own in numbered],
                    ASSUMED_DISTANCE,
                    options.max_answer_tokens,
                    stop,
                    words=job.question.words.bm25(window.token_ids),
                )
                return [(numbered[each][0], window.start, found) for each, found in readings]

            found = await self._run(job, read)

            def merge() -> HighlightedText:
                readings = [each for own in found for each in own]
                scores, share = self._bundle.scores, job.question.words.share
                shown, has_answer = highlighted(text, sentences, readings, scores.answers, options)
                relevances = [
                    WindowRelevance(each.relevance, share(each.words)) for _, _, each in readings
                ]
                remembered = sum(any(each.remembered for _, _, each in own) for own in found)
                return HighlightedText(
                    sentences=tuple(shown),
                    has_answer=has_answer,
                    relevance_score=relevance_score(best_odds(relevances, scores.relevance)),
                    report=self._report(job, remembered),
                )

            return await self._run_briefly(job, len(job.windows) + _BRIEF_TEXTS, merge)

    @asynccontextmanager
    async def _admitted(
        self, question: str, texts: Sequence[TextToRead], deadline: Deadline, client: str
    ) -> AsyncIterator[_Job]:
        """Admits and tokenises a request; its windows count as work in flight in the context."""
        started, loaded = time.perf_counter(), self._loaded
        if loaded is None:
            raise UnavailableError("the reader is still being loaded: try again")
        # a separate queue: a question of this client must not wait behind its texts
        queue = f"{client}:read"
        with ExitStack() as admission:
            windows = estimated_windows(texts)
            admission.enter_context(self._admission.enter(windows, deadline, client))
            with span("tokenise", {"winnow.texts": len(texts)}):
                asked = self._question.tokenise(loaded.tokenizer, question)
                tokenised = await self._tokenise(loaded.tokenizer, texts, deadline, queue)
            job = _Job(
                question=asked,
                texts=tokenised,
                windows=[],
                reader=loaded.reader,
                timings=ReadingTimings(),
                deadline=deadline,
                client=queue,
                started=started,
                release=admission.close,
            )
            model = loaded.reader.model
            cut = partial(windows_of, asked.ids, tokenised, model, caller.tenant())
            job.windows = await self._run_briefly(job, len(texts), cut)
            job.timings.tokenise = time.perf_counter() - started
            self._metrics.texts.observe(len(texts))
            yield job

    async def _tokenise(
        self, tokenizer: Tokenizer, texts: Sequence[TextToRead], deadline: Deadline, client: str
    ) -> list[TokenisedText]:
        parts = parts_of_texts(texts)

        def work(batch: Sequence[TextSegment], _stop: StopSignal) -> list[Tokens]:
            return tokenise_batch(tokenizer, batch)

        groups = list(batches(part for own in parts for part in own))
        done = await self._pool.call_each(work, groups, deadline.before_reply(), client)
        if done.unfinished:
            raise DeadlineExceededError(
                f"the deadline passed before {many(len(texts), 'text')} were divided into tokens: "
                "send fewer texts, or allow more time"
            )
        return joined(texts, parts, [each for own in done.results for each in own])

    async def _run(self, job: _Job, work: Read[Result]) -> list[Result]:
        """Reads all windows; returns the results in their order."""
        began = time.perf_counter()
        with span("read", {"winnow.windows": len(job.windows)}) as step:
            until = job.deadline.before_reply()
            count = partial(self._admission.count_read, 1)
            done = await self._pool.map(work, job.windows, until, count, job.client)
            step.set("winnow.queue_ms", done.queue_seconds * 1e3)
        self._check_finished(job, done.unfinished)
        job.timings.queue = done.queue_seconds
        job.timings.read = time.perf_counter() - began - done.queue_seconds
        return done.results

    async def _as_read(
        self, job: _Job, work: Read[Result]
    ) -> AsyncGenerator[tuple[TextWindow, Result], None]:
        """Reads all windows; yields each window with its result when it was read."""
        finished: deque[tuple[TextWindow, Result]] = deque()
        changed = asyncio.Event()

        def keep(window: TextWindow, stop: StopSignal) -> None:
            finished.append((window, work(window, stop)))

        def on_read() -> None:
            self._admission.count_read(1)
            changed.set()

        def on_end(_: object) -> None:
            job.release()  # a slow receiver of the results must not keep others from reading
            changed.set()

        began, until = time.perf_counter(), job.deadline.before_reply()
        running = asyncio.create_task(self._pool.map(keep, job.windows, until, on_read, job.client))
        running.add_done_callback(on_end)
        try:
            while not running.done() or finished:
                if not finished:
                    await changed.wait()
                    changed.clear()
                while finished:
                    yield finished.popleft()
            done = running.result()
            self._check_finished(job, done.unfinished)
            job.timings.queue = done.queue_seconds
            job.timings.read = time.perf_counter() - began - done.queue_seconds
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _run_briefly(self, job: _Job, items: int, work: Callable[[], Result]) -> Result:
        """Runs work for a number of items: on the event loop, or in a thread if there are many."""
        if items <= _BRIEF_TEXTS:
            return work()
        done = await self._pool.call_each(
            lambda _item, _stop: work(), [None], job.deadline, job.client
        )
        self._check_finished(job, done.unfinished)
        return done.results[0]

    def _check_finished(self, job: _Job, unfinished: int) -> None:
        if unfinished:
            raise DeadlineExceededError(
                f"the deadline passed before {many(len(job.texts), 'text')} were read: send fewer "
                "texts, or allow more time"
            )

    def _merge(self, job: _Job, found: Sequence[WindowReading]) -> list[TextReading]:
        windows: dict[int, list[tuple[TextWindow, WindowReading]]] = defaultdict(list)
        for window, reading in zip(job.windows, found, strict=True):
            windows[window.index].append((window, reading))
        return [self._merge_one(job, index, windows[index]) for index in range(len(job.texts))]

    def _merge_one(
        self, job: _Job, index: int, windows: Sequence[tuple[TextWindow, WindowReading]]
    ) -> TextReading:
        return text_reading(
            index,
            job.texts[index].text,
            [(window.start, reading) for window, reading in windows],
            self._bundle.scores,
            job.question,
        )

    def _has_answer(self, best: TextReading | None, min_confidence: float | None) -> bool:
        if best is None:
            return False
        if min_confidence is None:
            return self._bundle.scores.answers.threshold.accepts(best.score, best.confidence)
        return (best.confidence or 0.0) >= min_confidence

    def _report(self, job: _Job, remembered: int) -> ReadingReport:
        job.timings.total = time.perf_counter() - job.started
        self._metrics.observe(job.timings)
        texts = sum(len(each.title_ids) + len(each.tokens) for each in job.texts)
        return ReadingReport(
            question_truncated=job.question.truncated,
            unread_language=job.question.unread_language,
            tokens=len(job.question.ids) + texts,
            windows=len(job.windows),
            windows_remembered=remembered,
            timings=job.timings,
            model=self._bundle.model,
        )


def _read(job: _Job, max_answer_tokens: int, window: TextWindow, stop: StopSignal) -> WindowReading:
    """Reads a window, in a thread."""
    if not window.passage.tokens.ids:
        return _NOTHING
    words = job.question.words.bm25(window.token_ids)
    (reading,) = job.reader.read_windows(
        job.question.ids, window.passage, ASSUMED_DISTANCE, max_answer_tokens, stop, words=words
    )
    return reading


def _relevance(job: _Job, window: TextWindow, stop: StopSignal) -> list[WindowRelevance]:
    """Returns the relevance of a window, in a thread."""
    if not window.passage.tokens.ids:
        return [WindowRelevance(_NOTHING.relevance, 0.0)]
    words = job.question.words.share(job.question.words.bm25(window.token_ids))
    found = job.reader.relevances(job.question.ids, window.passage, stop)
    return [WindowRelevance(logit, words, remembered) for logit, remembered in found]
