"""The answer core: from a request to an answer, whatever brought the request.

Knows neither gRPC nor HTTP: both convert, call `ask`, and convert.
"""

import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from winnow import caller
from winnow.deadline import Deadline
from winnow.domain.answered import Answered, Timings
from winnow.domain.question import AnswerRequest, Question
from winnow.errors import UnavailableError
from winnow.policy.attempts import Asker
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.after import check_shards
from winnow.stateless.answer.answer_cache import AnswerCache, AnswerKey, Find
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.packing import Packing
from winnow.stateless.answer.validation import Defaults, validate
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.metrics import FrontMetrics
from winnow.telemetry.tracing.span import current

_log = structlog.get_logger("stateless.answer")
_HEADS = "predict"
"""The scope that heads need, also on a question."""
_MOST_LOGGED = 8
"""Shards in a line of the log."""
_RESERVE = 0.1
"""Share of the time left that heads may not use, or an answer would be late for one of them."""


class AnswerCore:
    """Answers requests, once the cluster is formed."""

    def __init__(
        self,
        defaults: Defaults,
        admission: Admission,
        metrics: FrontMetrics,
        asked: Callable[[], None] = lambda: None,
        remembered: AnswerCache | None = None,
        heads: QuestionHeads | None = None,
        packing: Packing | None = None,
    ) -> None:
        """`asked` is called at every question, before it is let in; `remembered` are the answers
        that are given again, if any are; `heads` are applied to questions that name some; `packing`
        makes answers ready to be sent that have long metadata.
        """
        self._defaults, self._admission, self._metrics = defaults, admission, metrics
        self._asked, self._remembered, self._heads = asked, remembered, heads
        self._packing = packing
        self._answerer: Answerer | None = None
        self.answered = 0
        """Questions so far."""

    @property
    def ready(self) -> bool:
        """Whether enough shards were found to answer."""
        return self._answerer is not None

    def serve(self, answerer: Answerer) -> None:
        """From now on questions go to `answerer`."""
        self._answerer = answerer

    async def ask(self, request: AnswerRequest, deadline: Deadline, client: str = "") -> Answered:
        """Validates a request, lets it in, and answers it before `deadline`.

        Args:
            request: as the caller made it.
            deadline: of the caller.
            client: a key of the caller, for sharing fairly; empty if it has none.

        Raises:
            InvalidRequestError: it breaks a rule; every field that does is named.
            DeadlineExceededError: nothing was read before the deadline.
            OverloadedError: it cannot be answered in time; says when to try again.
            PermissionDeniedError: it names heads, and the key of its caller is not for those.
            UnavailableError: not every shard was found yet, or no shard answered, or one did not
                and partial results are forbidden.

        """
        if request.heads:
            caller.expect(_HEADS)
        answered = await self._ask(request, deadline, client)
        if details := {part.shard: part.detail for part in answered.coverage.shards if part.detail}:
            _log.info("shards failed", **_some(details))
        self.answered += 1
        return answered

    async def _ask(self, request: AnswerRequest, deadline: Deadline, client: str) -> Answered:
        question = validate(request, self._defaults, self._fields(request))
        deadline.check("the question was looked at")
        self._asked()
        if self._answerer is None:
            raise UnavailableError(
                "not every shard of the index has been found yet: try again; if that goes on, the "
                "log of the front says which nodes it refuses"
            )
        check_shards(question.after, self._answerer.shards)
        find = partial(self._find, self._answerer, question, deadline, client)
        if self._remembered is None or request.fresh:
            answering = find()
        else:
            asker = self._admission.asker(question, self._answerer.shards, deadline, client)
            answering = self._recall(self._remembered, self._answerer, question, asker, find)
        if self._heads is None or not question.heads:
            return await answering
        return await self._with_heads(self._heads, question, answering, deadline, client)

    def _fields(self, request: AnswerRequest) -> Collection[str] | None:
        """The fields that its filter may name; None if it has none, or they are not known: a write
        that it waits for may bring one.
        """
        if self._answerer is None or not request.where or request.after:
            return None
        return self._answerer.fields

    async def _with_heads(
        self,
        heads: QuestionHeads,
        question: Question,
        answering: Coroutine[Any, Any, Answered],
        deadline: Deadline,
        client: str,
    ) -> Answered:
        """Answers while heads are applied. They are never remembered: they change as they like."""
        started = time.perf_counter()
        in_time = deadline.earlier(deadline.left() * _RESERVE)
        with heads.begin(question, in_time, client) as said:
            answered = await answering
            predictions = await said.result()
        answered.timings.total = time.perf_counter() - started
        return replace(answered, heads=predictions)

    async def _recall(
        self,
        remembered: AnswerCache,
        answerer: Answerer,
        question: Question,
        asker: Asker,
        find: Find,
    ) -> Answered:
        """The answer to the same question from before, or a new one.

        An answer from before needs no reading, so it is given whatever else there is to do.
        """
        started = time.perf_counter()
        cut = answerer.tokenise(question)
        tokenised = time.perf_counter() - started
        asked = AnswerKey.of(cut.ids, question)
        answered = await remembered.ask(asked, asker, find, question.after)
        current().set("winnow.cached", answered.cached)
        if not answered.cached:
            return answered
        timings = Timings(tokenise=tokenised, total=time.perf_counter() - started)
        return replace(answered, timings=timings, question_truncated=cut.truncated)

    async def _find(
        self, answerer: Answerer, question: Question, deadline: Deadline, client: str
    ) -> Answered:
        with (
            self._admission.enter(question, answerer.shards, deadline.left(), client) as admitted,
            self._metrics.in_flight.track_inprogress(),
        ):
            answered = await answerer.answer(admitted, deadline)
            if self._packing is None:
                return answered
            return await self._packing.pack(answered, client)


def _some(details: Mapping[int, str]) -> dict[str, Any]:
    """The failures of an answer, as a line of the log has them."""
    some = sorted(details.items())[:_MOST_LOGGED]
    return {"count": len(details), "shards": {str(shard): why for shard, why in some}}
