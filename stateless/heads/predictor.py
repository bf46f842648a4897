"""Applies heads to one text, each to the token states from the encoder of its group.

This module knows encoder groups and encoded texts. It does not know whether a text is a question.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, HeadPrediction
from winnow.errors import DeadlineExceededError, UnavailableError, WinnowError
from winnow.stateless.heads.encoder_groups import EncodedText, EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictions import (
    failed_prediction,
    failed_predictions,
    no_result_error,
    prediction_of,
)
from winnow.telemetry.tracing.span import span
from winnow.text.encoder import OnEncoded
from winnow.text.tokenizer import Tokens

_RESULT_RESERVE = 0.05
"""Share of the remaining time that is kept for collecting the predictions."""


class Predictor:
    """Applies heads to texts, also heads that have moved to another encoder group."""

    def __init__(self, groups: EncoderGroups, metrics: HeadMetrics) -> None:
        self._groups, self._metrics = groups, metrics

    async def predict(
        self,
        group: EncoderGroup,
        text: EncodedText,
        ids: Sequence[str],
        deadline: Deadline,
        client: str,
        applied_before: Sequence[Applied] = (),
    ) -> tuple[HeadPrediction, ...]:
        """Returns the predictions for a text that `group` has encoded, in the order of `ids`.

        Never raises. The result of a head that fails or is late is a failure. `applied_before` has
        the heads that were already applied.
        """
        known_ids = {each.head for each in applied_before}
        remaining = [each for each in ids if each not in known_ids]
        applied = list(applied_before)
        if remaining:
            applied += await _apply_heads(group, text, remaining, deadline, client)
        by_id = {each.head: prediction_of(text, each) for each in applied}
        by_id |= await self._predict_moved(group, text.text, applied, deadline, client)
        predictions = tuple(
            by_id.get(each) or failed_prediction(each, no_result_error(each)) for each in ids
        )
        for prediction in predictions:
            self._metrics.count_prediction(prediction.failure)
        return predictions

    async def _predict_moved(
        self,
        group: EncoderGroup,
        text: str,
        applied: Sequence[Applied],
        deadline: Deadline,
        client: str,
    ) -> dict[str, HeadPrediction]:
        """Applies heads that moved to another group of this front; leaves failed heads out."""
        moved: defaultdict[str, list[str]] = defaultdict(list)
        for each in applied:
            if each.moved_to and each.moved_to != group.name:
                moved[each.moved_to].append(each.head)
        others = [(other, ids) for name, ids in moved.items() if (other := self._groups.get(name))]
        async with asyncio.TaskGroup() as running:
            tasks = [
                running.create_task(_predict_with(other, text, ids, deadline, client))
                for other, ids in others
            ]
        predictions = [each for task in tasks for each in task.result()]
        return {each.head_id: each for each in predictions if each.failure is None}


def heads_deadline(deadline: Deadline) -> Deadline:
    """Returns an earlier deadline for heads, so that a late head does not fail the others."""
    return deadline.earlier(max(deadline.left(), 0.0) * _RESULT_RESERVE)


async def encode(
    group: EncoderGroup,
    text: str,
    tokens: Tokens,
    deadline: Deadline,
    client: str,
    on_encoded: OnEncoded | None = None,
) -> EncodedText:
    """Encodes a text with the encoder of `group`.

    `on_encoded` may be called in the thread of the encoder.

    Raises:
        WinnowError: the text could not be encoded before the deadline.

    """
    try:
        with span("encode", {"winnow.tokens": len(tokens)}):
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                return await group.encode(text, tokens, client, on_encoded)
    except TimeoutError as error:
        raise DeadlineExceededError("the deadline passed before the text was encoded") from error


async def _predict_with(
    group: EncoderGroup, text: str, ids: Sequence[str], deadline: Deadline, client: str
) -> tuple[HeadPrediction, ...]:
    try:
        (tokens,) = await group.tokenise([text])
        encoded = await encode(group, text, tokens, deadline, client)
    except WinnowError as error:
        return failed_predictions(ids, error)
    applied = await _apply_heads(group, encoded, ids, deadline, client)
    return tuple(prediction_of(encoded, each) for each in applied)


async def _apply_heads(
    group: EncoderGroup, text: EncodedText, ids: Sequence[str], deadline: Deadline, client: str
) -> Sequence[Applied]:
    states = text.encoding.states
    failure: WinnowError = UnavailableError(f"the encoder of group {group.name} returns no states")
    try:
        if states is not None:
            until = heads_deadline(deadline)
            with span("heads", {"winnow.ring": group.name, "winnow.heads": len(ids)}):
                async with asyncio.timeout(max(deadline.left(), 0.0)):
                    return await group.heads.apply(states, ids, until, client)
    except TimeoutError:
        failure = DeadlineExceededError("the deadline passed before the heads were applied")
    except WinnowError as error:
        failure = error
    return [Applied(head=each, version=0, failure=failure) for each in ids]
