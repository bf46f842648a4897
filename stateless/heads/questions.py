"""Heads on questions: applied to the question's own encoding while shards are searched.

An answer never waits long for heads, and is never lost for one.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Self

import structlog

from winnow.deadline import Deadline
from winnow.domain.answered import Timings
from winnow.domain.prediction import HeadPrediction
from winnow.domain.question import Question
from winnow.errors import DeadlineExceededError, UnavailableError, WinnowError
from winnow.stateless.encoding import QuestionEncoder, TokenisedQuestion
from winnow.stateless.heads.encoder_groups import EncoderGroup
from winnow.stateless.heads.predictions import failures
from winnow.stateless.heads.predictor import Predictor

_log = structlog.get_logger("stateless")
_Predictions = tuple[HeadPrediction, ...]
_LONGEST = 1.0
"""Seconds that heads may take, even if the deadline is later: a store that hangs must not hold up
answers. Heads are told this deadline, so that those that are ready do not wait for others."""


class QuestionHeads:
    """Begins to apply heads to questions."""

    def __init__(self, predictor: Predictor, group: EncoderGroup, encoder: QuestionEncoder) -> None:
        """`encoder`: of questions, shared with the group. It encodes nothing twice at a time."""
        self._predictor, self._group, self._encoder = predictor, group, encoder

    def begin(
        self, question: Question, tokens: TokenisedQuestion, deadline: Deadline, client: str
    ) -> "Predicting":
        """Starts applying the heads that a question names.

        Leaving the context cancels what still runs.
        """
        if not question.heads:
            return Predicting()
        return Predicting(self._predict(tokens, question.heads, deadline, client))

    async def _predict(
        self, tokens: TokenisedQuestion, ids: tuple[str, ...], deadline: Deadline, client: str
    ) -> _Predictions:
        until = Deadline(min(deadline.at, deadline.clock() + _LONGEST), deadline.clock)
        try:
            async with asyncio.timeout(until.left()):  # an encoder that hangs, too
                _, text = await self._encoder.encode(tokens, Timings(), client)
            return await self._predictor.predict(self._group, text, ids, until, client)
        except TimeoutError:
            return failures(ids, DeadlineExceededError("the question was not encoded in time"))
        except WinnowError as error:
            return failures(ids, error)
        except Exception as error:  # noqa: BLE001 (no answer is lost for a head)
            _log.error("heads on a question failed", error=str(error), exc_info=error)
            return failures(
                ids, UnavailableError("internal error; the server's log has the details")
            )


class Predicting:
    """The heads of one question; a context manager that leaves nothing running."""

    def __init__(self, work: Coroutine[Any, Any, _Predictions] | None = None) -> None:
        """`work`: begun at once; None where there are no heads."""
        self._task = asyncio.create_task(work) if work else None

    async def result(self) -> _Predictions:
        """The predictions; waits for them."""
        return await self._task if self._task else ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._task:
            self._task.cancel()
