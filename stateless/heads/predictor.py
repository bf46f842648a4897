"""Heads applied to one text, each on the states of the encoder group that serves it.

Knows encoder groups and encoded texts; does not know whether a question is answered, too.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import structlog

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, HeadPrediction
from winnow.errors import (
    DeadlineExceededError,
    UnavailableError,
    WinnowError,
)
from winnow.stateless.heads.encoder_groups import EncodedText, EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictions import failed, failures, missing, prediction_of
from winnow.telemetry.tracing.span import span
from winnow.text.encoder import OnEncoded
from winnow.text.tokenizer import Tokens

_log = structlog.get_logger("stateless")
_RESERVED = 0.05
"""Share of the time left that is reserved for handing over predictions."""


class Predictor:
    """Applies heads to texts."""

    def __init__(self, groups: EncoderGroups, metrics: HeadMetrics) -> None:
        self._groups, self._metrics = groups, metrics

    async def predict(
        self,
        group: EncoderGroup,
        text: EncodedText,
        ids: Sequence[str],
        deadline: Deadline,
        client: str,
        done: Sequence[Applied] = (),
    ) -> tuple[HeadPrediction, ...]:
        """The predictions of a text that `group` has encoded, in the order of `ids`.

        Never fails as a whole: a head that cannot be applied before the deadline is a failure.
        `done`: the heads that were applied already.
        """
        known = {each.head for each in done}
        left = [each for each in ids if each not in known]
        applied = [*done, *(await _apply(group, text, left, deadline, client) if left else ())]
        predicted = {each.head: prediction_of(text, each) for each in applied}
        predicted |= await self._moved(group, text.text, applied, deadline, client)
        found = tuple(predicted.get(each) or failed(each, missing(each)) for each in ids)
        for each in found:
            self._metrics.predicted(each.failure)
        return found

    async def _moved(
        self,
        group: EncoderGroup,
        text: str,
        applied: Sequence[Applied],
        deadline: Deadline,
        client: str,
    ) -> dict[str, HeadPrediction]:
        """Predictions of heads that another group of this front serves now, without failures."""
        moved: defaultdict[str, list[str]] = defaultdict(list)
        for each in applied:
            if each.moved_to and each.moved_to != group.name:
                moved[each.moved_to].append(each.head)
        others = [(other, ids) for name, ids in moved.items() if (other := self._groups.get(name))]
        async with asyncio.TaskGroup() as running:
            tasks = [
                running.create_task(_by_other(other, text, ids, deadline, client))
                for other, ids in others
            ]
        found = [each for task in tasks for each in task.result()]
        return {each.head_id: each for each in found if each.failure is None}


def for_heads(deadline: Deadline) -> Deadline:
    """The deadline of heads, a little earlier: then a late head does not fail the others."""
    return deadline.earlier(max(deadline.left(), 0.0) * _RESERVED)


async def encode(
    group: EncoderGroup,
    text: str,
    tokens: Tokens,
    deadline: Deadline,
    client: str,
    on_encoded: OnEncoded | None = None,
) -> EncodedText:
    """Encodes a text by the encoder of `group`; `on_encoded` may be called in the encoder's thread.

    Raises:
        WinnowError: it was not encoded before the deadline, or cannot be.

    """
    try:
        with span("encode", {"winnow.tokens": len(tokens)}):
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                return await group.encode(text, tokens, client, on_encoded)
    except TimeoutError as error:
        raise DeadlineExceededError("the deadline passed before the text was encoded") from error


async def _by_other(
    group: EncoderGroup, text: str, ids: Sequence[str], deadline: Deadline, client: str
) -> tuple[HeadPrediction, ...]:
    try:
        (tokens,) = await group.tokenise([text])
        encoded = await encode(group, text, tokens, deadline, client)
    except WinnowError as error:
        return failures(ids, error)
    applied = await _apply(group, encoded, ids, deadline, client)
    return tuple(prediction_of(encoded, each) for each in applied)


async def _apply(
    group: EncoderGroup, text: EncodedText, ids: Sequence[str], deadline: Deadline, client: str
) -> Sequence[Applied]:
    states = text.encoding.states
    failure: WinnowError = UnavailableError(f"the encoder of group {group.name} gives no states")
    try:
        if states is not None:
            until = for_heads(deadline)
            with span("heads", {"winnow.ring": group.name, "winnow.heads": len(ids)}):
                async with asyncio.timeout(max(deadline.left(), 0.0)):
                    return await group.heads.apply(states, ids, until, client)
    except TimeoutError:
        failure = DeadlineExceededError("the deadline passed before the heads were applied")
    except WinnowError as error:
        failure = error
    return [Applied(head=each, version=0, failure=failure) for each in ids]
