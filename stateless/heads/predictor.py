"""Heads applied to one text, each in the encoder group where it is at home.

Knows encoder groups and encoded texts; does not know who asks, nor whether for an answer, too.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import structlog

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, HeadPrediction, SequencePrediction
from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.quoting import quoted
from winnow.stateless.heads.encoder_groups import EncodedText, EncoderGroup, EncoderGroups
from winnow.stateless.heads.entities import entities
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.telemetry.tracing.span import span
from winnow.text.encoder import Then
from winnow.text.tokenizer import Tokens

_log = structlog.get_logger("stateless")
_TELLING = (
    NotFoundError,
    IdentityError,
    OverloadedError,
    DeadlineExceededError,
    UnavailableError,
)
"""What callers are told as it is. Anything else speaks of the server's files."""

_RESERVED = 0.05
"""Share of the time left that is kept for handing over what heads said."""


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
        """What each head says of a text that `group` has encoded, in the order of `ids`.

        Never fails as a whole: a head that cannot be applied before the deadline says so. `done`:
        the heads that were applied already.
        """
        known = {each.head for each in done}
        left = [each for each in ids if each not in known]
        applied = [*done, *(await _apply(group, text, left, deadline, client) if left else ())]
        said = {each.head: _prediction(text, each) for each in applied}
        said |= await self._moved(group, text.text, applied, deadline, client)
        # a head that nothing came back for is a mistake of whoever applied it
        found = tuple(said.get(each) or _failed(each, _missing(each)) for each in ids)
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
        homes = [(home, ids) for name, ids in moved.items() if (home := self._groups.get(name))]
        async with asyncio.TaskGroup() as running:
            tasks = [
                running.create_task(_at_home(home, text, ids, deadline, client))
                for home, ids in homes
            ]
        found = [each for task in tasks for each in task.result()]
        return {each.head_id: each for each in found if each.failure is None}


def failures(ids: Sequence[str], error: WinnowError) -> tuple[HeadPrediction, ...]:
    """The same failure for each head."""
    return tuple(_failed(each, error) for each in ids)


def for_heads(deadline: Deadline) -> Deadline:
    """A little earlier, so that heads that are late do not take the others with them."""
    return deadline.earlier(max(deadline.left(), 0.0) * _RESERVED)


async def encode(
    group: EncoderGroup,
    text: str,
    tokens: Tokens,
    deadline: Deadline,
    client: str,
    then: Then | None = None,
) -> EncodedText:
    """A text by the encoder of `group`; `then` is what may be done where it is encoded.

    Raises:
        WinnowError: it was not encoded before the deadline, or cannot be.

    """
    try:
        with span("encode", {"winnow.tokens": len(tokens)}):
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                return await group.encode(text, tokens, client, then)
    except TimeoutError as error:
        raise DeadlineExceededError("the deadline passed before the text was encoded") from error


async def _at_home(
    group: EncoderGroup, text: str, ids: Sequence[str], deadline: Deadline, client: str
) -> tuple[HeadPrediction, ...]:
    try:
        (tokens,) = await group.tokenise([text])
        encoded = await encode(group, text, tokens, deadline, client)
    except WinnowError as error:
        return failures(ids, error)
    applied = await _apply(group, encoded, ids, deadline, client)
    return tuple(_prediction(encoded, each) for each in applied)


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


def _prediction(text: EncodedText, applied: Applied) -> HeadPrediction:
    said = applied.prediction
    if said is None:
        return _failed(applied.head, applied.failure or _missing(applied.head))
    if isinstance(said, SequencePrediction):
        return HeadPrediction(
            head_id=applied.head,
            version=applied.version,
            labels=said.labels,
            out_of_scope=said.out_of_scope,
        )
    try:
        found = entities(text.text, text.tokens.offsets, said.spans)
    except WinnowError as error:
        return _failed(applied.head, error)
    return HeadPrediction(head_id=applied.head, version=applied.version, entities=found)


def _failed(head: str, error: WinnowError) -> HeadPrediction:
    if isinstance(error, NotFoundError):  # where it was looked for is nobody's business
        error = NotFoundError(f"there is no head {quoted(head)} in this encoder group")
    if not isinstance(error, _TELLING):
        _log.error("a head cannot be applied", head=head, error=str(error), exc_info=error)
        error = UnavailableError(f"head {head} cannot be applied; the server's log has the details")
    return HeadPrediction(head_id=head, failure=error)


def _missing(head: str) -> UnavailableError:
    return UnavailableError(f"nothing came back for head {head}")
