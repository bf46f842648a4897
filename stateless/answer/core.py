"""The answer core: from a request to an answer.

The core knows neither gRPC nor HTTP. Both convert the request, call `answer` and convert the
result.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import structlog

from winnow import caller
from winnow.deadline import Deadline
from winnow.domain.answered import Answered, Timings
from winnow.domain.question import AnswerRequest, Question
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.answer_cache import AnswerCache, AnswerKey
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.sizing import is_likely
from winnow.stateless.answer.validation import (
    QuestionDefaults,
    current_positions,
    validate,
)
from winnow.stateless.cluster.current import CurrentPart
from winnow.stateless.encoding import TokenisedQuestion
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.metrics import FrontMetrics
from winnow.telemetry.tracing.span import current

Pack = Callable[[Answered, str], Awaitable[Answered]]
"""Serialises an answer once for several replies: `pack(answered, client)`."""
_log = structlog.get_logger("stateless.answer")
_HEADS_SCOPE = "predict"
"""Key scope that heads need, also heads that a question names."""
_MAX_LOGGED_SHARDS = 8
"""Maximum number of failed shards that a log line names."""
_ANSWER_RESERVE = 0.1
"""Share of the remaining time that heads must not use, so that heads never make answers late."""


class AnswerCalls(Protocol):
    """What answers questions: the core of one index, or the cores of several."""

    async def answer(
        self, request: AnswerRequest, deadline: Deadline, client: str = ""
    ) -> Answered:
        """Answers a request; see `AnswerCore.answer`."""


class AnswerCore:
    """Answers requests. Before the cluster is complete it refuses them."""

    def __init__(
        self,
        defaults: QuestionDefaults,
        admission: Admission,
        metrics: FrontMetrics,
        *,
        on_question: Callable[[], None] = lambda: None,
        cache: AnswerCache | None = None,
        heads: QuestionHeads | None = None,
        pack: Pack | None = None,
    ) -> None:
        """Creates a core that refuses questions until `set_answerer` is called.

        Args:
            defaults: values of options that a request does not set.
            admission: admits questions.
            metrics: metrics of questions.
            on_question: is called for every valid question, before its admission.
            cache: cache of complete answers; None disables it.
            heads: applies heads to questions that name some.
            pack: serialises answers with long metadata, once for all callers who get them.

        """
        self._defaults, self._admission, self._metrics = defaults, admission, metrics
        self._on_question, self._cache, self._heads = on_question, cache, heads
        self._pack = pack
        self._answerer = CurrentPart[Answerer]()
        self.answered_questions = 0
        """Number of questions answered since the start."""

    @property
    def ready(self) -> bool:
        """Whether enough shards were found to answer questions."""
        return self._answerer.value is not None

    def set_answerer(self, answerer: Answerer) -> None:
        """Makes `answerer` answer all later questions."""
        self._answerer.set(answerer)

    async def answer(
        self, request: AnswerRequest, deadline: Deadline, client: str = ""
    ) -> Answered:
        """Validates a request, admits it, and answers it before `deadline`.

        Args:
            request: request of the caller.
            deadline: deadline of the caller.
            client: key of the caller, for fair sharing; may be empty.

        Raises:
            InvalidRequestError: the request breaks a rule; the error names every invalid field.
            DeadlineExceededError: nothing was read before the deadline.
            OverloadedError: the front or all shards are overloaded; the error says when to try
                again.
            PermissionDeniedError: the request names heads, and the caller's key lacks the scope
                `predict`.
            UnavailableError: not every shard was found yet, no shard answered, or a shard failed
                and partial results are forbidden.

        """
        if request.heads:
            caller.require_scope(_HEADS_SCOPE)
        question = validate(request, self._defaults, self._fields(request))
        deadline.check("the question was validated")
        self._on_question()
        answerer = await self._answerer.knowing(question.after, deadline)
        if question.after:
            after = current_positions(question.after, answerer.partition)
            question = replace(question, after=after)
        tokens = answerer.tokenise(question)
        compute = partial(self._admit_and_answer, answerer, question, tokens, deadline, client)
        if self._cache is None or request.fresh:
            answering: Awaitable[Answered] = compute()
        else:
            flight_caller = self._admission.flight_caller(
                question, answerer.count_shards(question), deadline, client
            )
            key = AnswerKey.of(tokens.ids, question)
            lookup = self._cache.get_or_compute(
                key, flight_caller, compute, question.after, answerer.required_writes
            )
            answering = _with_own_timings(lookup, tokens)
        if self._heads is not None and question.heads:
            answering = self._with_heads(self._heads, question, tokens, answering, deadline, client)
        answered = await answering
        if question.min_confidence is not None:
            likely = is_likely(answered.answers, question.min_confidence)
            answered = replace(answered, has_answer=likely)
        if details := {part.shard: part.detail for part in answered.coverage.shards if part.detail}:
            _log.info("shards failed", **_log_fields(details))
        self.answered_questions += 1
        return answered

    def _fields(self, request: AnswerRequest) -> Collection[str] | None:
        """The fields that the request's filter may name; None if they are not checked.

        They are not checked if the request waits for a write, which may add a field, or if it is of
        a tenant: the fields are those of all tenants.
        """
        if self._answerer.value is None or not request.where or request.after or request.tenant:
            return None
        return self._answerer.value.fields

    async def _with_heads(
        self,
        heads: QuestionHeads,
        question: Question,
        tokens: TokenisedQuestion,
        answering: Awaitable[Answered],
        deadline: Deadline,
        client: str,
    ) -> Answered:
        """Applies heads while the question is answered. Predictions are not cached, because heads
        may change.
        """
        started = time.perf_counter() - tokens.seconds
        heads_deadline = deadline.earlier(deadline.left() * _ANSWER_RESERVE)
        with heads.start_predicting(question, tokens, heads_deadline, client) as predicting:
            answered = await answering
            predictions = await predicting
        answered.timings.total = time.perf_counter() - started
        return replace(answered, heads=predictions)

    async def _admit_and_answer(
        self,
        answerer: Answerer,
        question: Question,
        tokens: TokenisedQuestion,
        deadline: Deadline,
        client: str,
    ) -> Answered:
        """Admits the question and answers it from the shards."""
        shards = answerer.count_shards(question)
        with (
            self._admission.enter(question, shards, deadline.left(), client) as admitted,
            self._metrics.in_flight.track_inprogress(),
        ):
            answered = await answerer.answer(admitted, tokens, deadline)
            return answered if self._pack is None else await self._pack(answered, client)


async def _with_own_timings(lookup: Awaitable[Answered], tokens: TokenisedQuestion) -> Answered:
    """Awaits a lookup in the cache. A cached answer gets the timings of this question."""
    started = time.perf_counter() - tokens.seconds
    answered = await lookup
    current().set("winnow.cached", answered.cached)
    if not answered.cached:
        return answered
    timings = Timings(tokenise=tokens.seconds, total=time.perf_counter() - started)
    return replace(
        answered,
        timings=timings,
        question_truncated=tokens.truncated,
        unread_language=tokens.unread_language,
    )


def _log_fields(details: Mapping[int, str]) -> dict[str, Any]:
    """The fields of the log line on failed shards. Only the first shards are named."""
    named = sorted(details.items())[:_MAX_LOGGED_SHARDS]
    return {"count": len(details), "shards": {str(shard): detail for shard, detail in named}}
