"""The predict core: from texts to predictions.

Knows neither gRPC nor HTTP: both convert, call `predict`, and convert.
"""

import asyncio
import time
from collections.abc import Sequence

from winnow.deadline import Deadline
from winnow.domain.prediction import (
    EncoderGroupInfo,
    HeadPrediction,
    Predicted,
    PredictRequest,
    PredictTimings,
    TextPrediction,
)
from winnow.errors import NotFoundError, WinnowError
from winnow.heads.admission import TextAdmission
from winnow.quoting import quoted
from winnow.stateless.heads.encoder_groups import EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictions import failures
from winnow.stateless.heads.predictor import Predictor, encode, for_heads
from winnow.stateless.heads.validation import (
    ValidPredictRequest,
    no_word_violation,
    raise_if_any,
    validate,
)
from winnow.telemetry.tracing.span import span
from winnow.text.tokenizer import Tokens

_RESERVE = 0.02
"""Seconds before the deadline at which late texts and heads are given up; at most a tenth."""


class PredictCore:
    """Encodes each text once, and applies every head to that."""

    def __init__(
        self,
        groups: EncoderGroups,
        predictor: Predictor,
        admission: TextAdmission,
        metrics: HeadMetrics,
    ) -> None:
        self._groups, self._predictor = groups, predictor
        self._admission, self._metrics = admission, metrics

    async def predict(
        self, request: PredictRequest, deadline: Deadline, client: str = ""
    ) -> Predicted:
        """Validates a request, lets it in, and predicts before `deadline`.

        Args:
            request: as the caller made it.
            deadline: of the caller.
            client: a key of the caller, for sharing fairly; empty if it has none.

        Raises:
            InvalidRequestError: it breaks a rule; every field that does is named.
            NotFoundError: there is no such encoder group, or no such head; every one is named.
            OverloadedError: too many texts are in hand; says when to try again.
            UnavailableError: this front serves no heads.
            WinnowError: no head could be applied to any text; the error of the first.

        """
        started = time.perf_counter()
        asked = validate(request)
        deadline.check("the texts were looked at")
        group, timings = self._groups.find(asked.group), PredictTimings()
        with self._admission.enter(len(asked.texts), client):
            results = await self._predict(group, asked, timings, deadline, client)
        _expect_some([each for result in results for each in result.heads])
        timings.total = time.perf_counter() - started
        self._metrics.observe(timings)
        return Predicted(tuple(results), group.name, timings)

    def groups(self, name: str = "") -> list[EncoderGroupInfo]:
        """The group of that name, or every group; raises NotFoundError if there is none."""
        chosen = [self._groups.find(name)] if name else self._groups.all()
        return [group.info() for group in chosen]

    async def _predict(
        self,
        group: EncoderGroup,
        asked: ValidPredictRequest,
        timings: PredictTimings,
        deadline: Deadline,
        client: str,
    ) -> list[TextPrediction]:
        started = time.perf_counter()
        tokens = await group.tokenise(asked.texts)
        timings.tokenise = time.perf_counter() - started
        raise_if_any(
            [
                no_word_violation(f)
                for f, own in zip(asked.fields, tokens, strict=True)
                if not own.ids
            ]
        )
        reserve = min(_RESERVE, deadline.left() / 10)
        until, ids = deadline.earlier(reserve), asked.head_ids
        # texts wait in a queue apart: sixteen texts of a client would be before its question
        queue = f"{client}:predict"
        async with asyncio.TaskGroup() as running:
            tasks = [
                running.create_task(self._text(group, text, own, ids, until, queue, timings))
                for text, own in zip(asked.texts, tokens, strict=True)
            ]
        return [task.result() for task in tasks]

    async def _text(
        self,
        group: EncoderGroup,
        text: str,
        tokens: Tokens,
        ids: Sequence[str],
        deadline: Deadline,
        client: str,
        timings: PredictTimings,
    ) -> TextPrediction:
        """The predictions of one text. Its failure does not fail the others."""
        with span("text"), group.ahead(ids, for_heads(deadline)) as ahead:
            try:
                encoded = await encode(group, text, tokens, deadline, client, ahead.run)
            except WinnowError as error:
                return TextPrediction(failures(ids, error))
            done = ahead.applied()
            timings.queue += encoded.encoding.queue
            timings.encode += encoded.encoding.encode
            began = time.perf_counter()
            heads = await self._predictor.predict(group, encoded, ids, deadline, client, done)
            timings.heads += ahead.seconds + time.perf_counter() - began
            return TextPrediction(heads, encoded.truncated)


def _expect_some(predictions: Sequence[HeadPrediction]) -> None:
    """Raises NotFoundError if a head is unknown, or the first error if every head failed."""
    unknown = [each.head_id for each in predictions if isinstance(each.failure, NotFoundError)]
    if unknown:
        named = ", ".join(map(quoted, dict.fromkeys(unknown)))
        raise NotFoundError(
            f"there is no head {named} in this encoder group: see `winnow heads list STORE`"
        )
    first = predictions[0].failure
    if first is not None and all(each.failure for each in predictions):
        raise first
