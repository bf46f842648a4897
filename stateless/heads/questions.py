"""Applies heads to the encoding of a question while the shards are searched.

Heads never delay an answer for long, and never make it fail.
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
"""Maximum seconds for heads, so that a hung store cannot delay answers.

Each head gets this deadline, so that the results of finished heads do not wait for late heads.
"""


class QuestionHeads:
    """Applies the heads that questions name."""

    def __init__(self, predictor: Predictor, group: EncoderGroup, encoder: QuestionEncoder) -> None:
        """`encoder` must share the cache of `group`, so that no question is encoded twice."""
        self._predictor, self._group, self._encoder = predictor, group, encoder

    @contextmanager
    def start_predicting(
        self, question: Question, tokens: TokenisedQuestion, deadline: Deadline, client: str
    ) -> Iterator[Awaitable[_Predictions]]:
        """Starts applying the heads of a question. Leaving the context cancels this."""
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
