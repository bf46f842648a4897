"""Applies heads to the encoding of a question while shards are searched.

An answer never waits long for heads, and never fails because of them.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

import structlog

from winnow.deadline import Deadline
from winnow.domain.answered import Timings
from winnow.domain.prediction import HeadPrediction
from winnow.domain.question import Question
from winnow.errors import DeadlineExceededError, UnavailableError, WinnowError
from winnow.stateless.encoding import QuestionEncoder, TokenisedQuestion
from winnow.stateless.heads.encoder_groups import EncoderGroup
from winnow.stateless.heads.predictions import failed_predictions
from winnow.stateless.heads.predictor import Predictor

_log = structlog.get_logger("stateless")
_Predictions = tuple[HeadPrediction, ...]
_MAX_SECONDS = 1.0
"""Limit of the time for heads, even if the deadline is later: a hung store must not delay answers.
Heads get this deadline, too: finished heads do not wait for others.
"""


class QuestionHeads:
    """Applies heads to questions."""

    def __init__(self, predictor: Predictor, group: EncoderGroup, encoder: QuestionEncoder) -> None:
        """`encoder` encodes questions. It shares the group's cache, so nothing is encoded twice."""
        self._predictor, self._group, self._encoder = predictor, group, encoder

    @contextmanager
    def begin(
        self, question: Question, tokens: TokenisedQuestion, deadline: Deadline, client: str
    ) -> Iterator[Awaitable[_Predictions]]:
        """Starts applying the heads of a question; leaving the context cancels them."""
        task = asyncio.create_task(self._predict(tokens, question.heads, deadline, client))
        try:
            yield task
        finally:
            task.cancel()

    async def _predict(
        self, tokens: TokenisedQuestion, ids: tuple[str, ...], deadline: Deadline, client: str
    ) -> _Predictions:
        until = Deadline(min(deadline.at, deadline.clock() + _MAX_SECONDS), deadline.clock)
        try:
            async with asyncio.timeout(until.left()):  # the encoder may hang, too
                _, text = await self._encoder.encode(tokens, Timings(), client)
            return await self._predictor.predict(self._group, text, ids, until, client)
        except TimeoutError:
            return failed_predictions(
                ids, DeadlineExceededError("the question was not encoded in time")
            )
        except WinnowError as error:
            return failed_predictions(ids, error)
        except Exception as error:  # noqa: BLE001 (an answer must not fail because of a head)
            _log.error("heads on a question failed", error=str(error), exc_info=error)
            return failed_predictions(
                ids, UnavailableError("internal error; the server's log has the details")
            )
