"""The predict core: from texts to predictions.

The core knows neither gRPC nor HTTP. Both convert requests, call `predict` and convert results.
"""

import asyncio
import time
from collections.abc import Sequence

from winnow.deadline import Deadline
from winnow.domain.prediction import (
    EncoderGroupInfo,
    HeadPrediction,
    PredictionReply,
    PredictRequest,
    PredictTimings,
    TextPrediction,
)
from winnow.errors import NotFoundError, WinnowError
from winnow.heads.admission import TextAdmission
from winnow.quoting import quoted
from winnow.stateless.heads.encoder_groups import EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictions import failed_predictions
from winnow.stateless.heads.predictor import Predictor, encode, heads_deadline
from winnow.stateless.heads.validation import (
    ValidPredictRequest,
    no_word_violation,
    raise_if_any,
    validate,
)
from winnow.telemetry.tracing.span import span
from winnow.text.tokenizer import Tokens

_REPLY_RESERVE = 0.02
"""Seconds before the deadline at which late texts and heads are given up, but at most a tenth of
the time left.
"""


class PredictCore:
    """Encodes each text once, and applies every requested head to the encoding."""

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
    ) -> PredictionReply:
        """Validates a request, admits it, and predicts before `deadline`.

        Args:
            request: request of the caller.
            deadline: deadline of the caller.
            client: key of the caller, for fair sharing; may be empty.

        Raises:
            InvalidRequestError: the request breaks a rule; the error names every invalid field.
            NotFoundError: the encoder group or a head is unknown; the error names every
                unknown head.
            OverloadedError: too many texts are in flight; the error says when to try again.
            UnavailableError: this front serves no heads.
            WinnowError: every head failed on every text. This is the first error.

        """
        started = time.perf_counter()
        valid = validate(request)
        deadline.check("the texts were validated")
        group, timings = self._groups.find(valid.group), PredictTimings()
        with self._admission.enter(len(valid.texts), client):
            results = await self._predict(group, valid, timings, deadline, client)
        _raise_if_none_applied([each for result in results for each in result.heads])
        timings.total = time.perf_counter() - started
        self._metrics.observe(timings)
        return PredictionReply(tuple(results), group.name, timings)

    def groups(self, name: str = "") -> list[EncoderGroupInfo]:
        """Describes the encoder group `name`, or all groups if `name` is empty.

        Raises NotFoundError if the group is unknown.
        """
        chosen = [self._groups.find(name)] if name else self._groups.all()
        return [group.info() for group in chosen]

    async def _predict(
        self,
        group: EncoderGroup,
        valid: ValidPredictRequest,
        timings: PredictTimings,
        deadline: Deadline,
        client: str,
    ) -> list[TextPrediction]:
        started = time.perf_counter()
        tokens = await group.tokenise(valid.texts)
        timings.tokenise = time.perf_counter() - started
        raise_if_any(
            [
                no_word_violation(f)
                for f, own in zip(valid.fields, tokens, strict=True)
                if not own.ids
            ]
        )
        reserve = min(_REPLY_RESERVE, deadline.left() / 10)
        until, ids = deadline.earlier(reserve), valid.head_ids
        # a separate queue: a question of this client must not wait behind its sixteen texts
        queue = f"{client}:predict"
        async with asyncio.TaskGroup() as running:
            tasks = [
                running.create_task(self._text(group, text, own, ids, until, queue, timings))
                for text, own in zip(valid.texts, tokens, strict=True)
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
        """Predicts for one text. If it cannot be encoded, the other texts are not affected."""
        with span("text"), group.begin_run(ids, heads_deadline(deadline)) as run:
            try:
                encoded = await encode(group, text, tokens, deadline, client, run.run)
            except WinnowError as error:
                return TextPrediction(failed_predictions(ids, error))
            applied = run.applied()
            timings.queue += encoded.encoding.queue
            timings.encode += encoded.encoding.encode
            started = time.perf_counter()
            heads = await self._predictor.predict(group, encoded, ids, deadline, client, applied)
            timings.heads += run.seconds + time.perf_counter() - started
            return TextPrediction(heads, encoded.truncated)


def _raise_if_none_applied(predictions: Sequence[HeadPrediction]) -> None:
    """Raises NotFoundError if a head is unknown, or the first error if every head failed."""
    unknown = [each.head_id for each in predictions if isinstance(each.failure, NotFoundError)]
    if unknown:
        ids = ", ".join(map(quoted, dict.fromkeys(unknown)))
        raise NotFoundError(
            f"there is no head {ids} in this encoder group: see `winnow heads list STORE`"
        )
    first = predictions[0].failure
    if first is not None and all(each.failure for each in predictions):
        raise first
