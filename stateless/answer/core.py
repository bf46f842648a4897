"""The answer core: from a request to an answer, without any transport.

Knows neither gRPC nor HTTP: both convert the request, call `ask`, and convert the answer.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from winnow import caller
from winnow.deadline import Deadline
from winnow.domain.answered import Answered, Timings
from winnow.domain.question import AnswerRequest, Question
from winnow.errors import UnavailableError
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.answer_cache import AnswerCache, AnswerKey
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.validation import Defaults, check_shards, validate
from winnow.stateless.encoding import TokenisedQuestion
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.metrics import FrontMetrics
from winnow.telemetry.tracing.span import current

Pack = Callable[[Answered, str], Awaitable[Answered]]
"""Prepares an answer for several replies: `pack(answered, client)`."""
_log = structlog.get_logger("stateless.answer")
_HEADS = "predict"
"""The scope that a key needs for heads, also for heads on a question."""
_MOST_LOGGED = 8
"""Most failed shards in a line of the log."""
_RESERVE = 0.1
"""Share of the time left that heads may not use, so that no answer is late because of them."""


class AnswerCore:
    """Answers requests, once the cluster is formed."""

    def __init__(
        self,
        defaults: Defaults,
        admission: Admission,
        metrics: FrontMetrics,
        *,
        on_question: Callable[[], None] = lambda: None,
        cache: AnswerCache | None = None,
        heads: QuestionHeads | None = None,
        pack: Pack | None = None,
    ) -> None:
        """Answers nothing before `serve` is called.

        Args:
            defaults: options of questions that do not set them.
            admission: lets questions in.
            metrics: count questions.
            on_question: is called for every valid question, before it is let in.
            cache: keeps complete answers; None keeps none.
            heads: are applied to questions that name some.
            pack: serialises answers with long metadata, once for all who get them.

        """
        self._defaults, self._admission, self._metrics = defaults, admission, metrics
        self._on_question, self._cache, self._heads = on_question, cache, heads
        self._pack = pack
        self._answerer: Answerer | None = None
        self.answered_questions = 0
        """Number of questions answered since the start."""

    @property
    def ready(self) -> bool:
        """Whether enough shards were found to answer."""
        return self._answerer is not None

    def serve(self, answerer: Answerer) -> None:
        """Sends questions to `answerer` from now on."""
        self._answerer = answerer

    async def ask(self, request: AnswerRequest, deadline: Deadline, client: str = "") -> Answered:
        """Validates a request, lets it in, and answers it before `deadline`.

        Args:
            request: the request as the caller made it.
            deadline: deadline of the caller.
            client: key of the caller, for fair sharing; empty if it has none.

        Raises:
            InvalidRequestError: the request breaks a rule; every wrong field is named.
            DeadlineExceededError: nothing was read before the deadline.
            OverloadedError: it cannot be answered in time; says when to try again.
            PermissionDeniedError: it names heads, and the caller's key lacks that scope.
            UnavailableError: not every shard was found yet, no shard answered, or a shard failed
                and partial results are forbidden.

        """
        if request.heads:
            caller.expect(_HEADS)
        question = validate(request, self._defaults, self._fields(request))
        deadline.check("the question was looked at")
        self._on_question()
        if (answerer := self._answerer) is None:
            raise UnavailableError(
                "not every shard of the index has been found yet: try again; if that goes on, the "
                "log of the front says which nodes it refuses"
            )
        check_shards(question.after, answerer.shards)
        tokens = answerer.tokenise(question)
        find = partial(self._find, answerer, question, tokens, deadline, client)
        if self._cache is None or request.fresh:
            answering: Awaitable[Answered] = find()
        else:
            asker = self._admission.asker(question, answerer.shards, deadline, client)
            asked = self._cache.ask(AnswerKey.of(tokens.ids, question), asker, find, question.after)
            answering = _timed(asked, tokens)
        if self._heads is not None and question.heads:
            answering = self._with_heads(self._heads, question, tokens, answering, deadline, client)
        answered = await answering
        if details := {part.shard: part.detail for part in answered.coverage.shards if part.detail}:
            _log.info("shards failed", **_some(details))
        self.answered_questions += 1
        return answered

    def _fields(self, request: AnswerRequest) -> Collection[str] | None:
        """The fields that the request's filter may name. None if it has no filter, or if they are
        not known: a write that the request waits for may bring a new field.
        """
        if self._answerer is None or not request.where or request.after:
            return None
        return self._answerer.fields

    async def _with_heads(
        self,
        heads: QuestionHeads,
        question: Question,
        tokens: TokenisedQuestion,
        answering: Awaitable[Answered],
        deadline: Deadline,
        client: str,
    ) -> Answered:
        """Answers while heads are applied. Predictions are never cached: heads may change."""
        started = time.perf_counter() - tokens.seconds
        in_time = deadline.earlier(deadline.left() * _RESERVE)
        with heads.begin(question, tokens, in_time, client) as predicting:
            answered = await answering
            predictions = await predicting.result()
        answered.timings.total = time.perf_counter() - started
        return replace(answered, heads=predictions)

    async def _find(
        self,
        answerer: Answerer,
        question: Question,
        tokens: TokenisedQuestion,
        deadline: Deadline,
        client: str,
    ) -> Answered:
        """Asks the shards for the answer, as a question that was let in."""
        with (
            self._admission.enter(question, answerer.shards, deadline.left(), client) as admitted,
            self._metrics.in_flight.track_inprogress(),
        ):
            answered = await answerer.answer(admitted, tokens, deadline)
            return answered if self._pack is None else await self._pack(answered, client)


async def _timed(asked: Awaitable[Answered], tokens: TokenisedQuestion) -> Answered:
    """An answer of the cache, with timings of this question if another one had it found."""
    started = time.perf_counter() - tokens.seconds
    answered = await asked
    current().set("winnow.cached", answered.cached)
    if not answered.cached:
        return answered
    timings = Timings(tokenise=tokens.seconds, total=time.perf_counter() - started)
    return replace(answered, timings=timings, question_truncated=tokens.truncated)


def _some(details: Mapping[int, str]) -> dict[str, Any]:
    """The fields of the log line on failed shards."""
    some = sorted(details.items())[:_MOST_LOGGED]
    return {"count": len(details), "shards": {str(shard): why for shard, why in some}}
