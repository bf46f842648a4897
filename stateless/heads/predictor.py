"""Heads applied to one text, each in the ring where it is at home.

Knows rings and encoded texts; does not know who asks, nor whether for an answer, too.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import structlog

from winnow.deadline import Deadline
from winnow.domain.predicted import HeadPrediction
from winnow.domain.prediction import Applied, SequencePrediction
from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.quoting import quoted
from winnow.stateless.heads.entities import entities
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.ring import Ring
from winnow.stateless.heads.rings import Rings
from winnow.stateless.heads.text import EncodedText
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

    def __init__(self, rings: Rings, metrics: HeadMetrics) -> None:
        self._rings, self._metrics = rings, metrics

    async def predict(
        self,
        ring: Ring,
        text: EncodedText,
        ids: Sequence[str],
        deadline: Deadline,
        client: str,
        done: Sequence[Applied] = (),
    ) -> tuple[HeadPrediction, ...]:
        """What each head says of a text that `ring` has encoded, in the order of `ids`.

        Never fails as a whole: a head that cannot be applied before the deadline says so. `done`:
        the heads that were applied already.
        """
        known = {each.head for each in done}
        left = [each for each in ids if each not in known]
        applied = [*done, *(await _apply(ring, text, left, deadline, client) if left else ())]
        said = {each.head: _prediction(text, each) for each in applied}
        said |= await self._moved(ring, text.text, applied, deadline, client)
        # a head that nothing came back for is a mistake of whoever applied it
        found = tuple(said.get(each) or _failed(each, _missing(each)) for each in ids)
        for each in found:
            self._metrics.predicted(each.failure)
        return found

    async def _moved(
        self,
        ring: Ring,
        text: str,
        applied: Sequence[Applied],
        deadline: Deadline,
        client: str,
    ) -> dict[str, HeadPrediction]:
        """What heads say that another ring serves now, where it is here and they say something."""
        moved: defaultdict[str, list[str]] = defaultdict(list)
        for each in applied:
            if each.moved_to and each.moved_to != ring.name:
                moved[each.moved_to].append(each.head)
        homes = [(home, ids) for name, ids in moved.items() if (home := self._rings.get(name))]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_at_home(home, text, ids, deadline, client))
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
    ring: Ring,
    text: str,
    tokens: Tokens,
    deadline: Deadline,
    client: str,
    then: Then | None = None,
) -> EncodedText:
    """A text by the encoder of `ring`; `then` is what may be done where it is encoded.

    Raises:
        WinnowError: it was not encoded before the deadline, or cannot be.

    """
    try:
        with span("encode", {"winnow.tokens": len(tokens)}):
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                return await ring.encode(text, tokens, client, then)
    except TimeoutError as error:
        raise DeadlineExceededError("the deadline passed before the text was encoded") from error


async def _at_home(
    ring: Ring, text: str, ids: Sequence[str], deadline: Deadline, client: str
) -> tuple[HeadPrediction, ...]:
    try:
        (tokens,) = await ring.tokenise([text])
        encoded = await encode(ring, text, tokens, deadline, client)
    except WinnowError as error:
        return failures(ids, error)
    applied = await _apply(ring, encoded, ids, deadline, client)
    return tuple(_prediction(encoded, each) for each in applied)


async def _apply(
    ring: Ring, text: EncodedText, ids: Sequence[str], deadline: Deadline, client: str
) -> Sequence[Applied]:
    states = text.encoding.states
    failure: WinnowError = UnavailableError(f"the encoder of ring {ring.name} gives no states")
    try:
        if states is not None:
            until = for_heads(deadline)
            with span("heads", {"winnow.ring": ring.name, "winnow.heads": len(ids)}):
                async with asyncio.timeout(max(deadline.left(), 0.0)):
                    return await ring.heads.apply(states, ids, until, client)
    except TimeoutError:
        failure = DeadlineExceededError("the deadline passed before the heads were applied")
    except WinnowError as error:
        failure = error
    return [Applied(each, 0, failure=failure) for each in ids]


def _prediction(text: EncodedText, applied: Applied) -> HeadPrediction:
    said = applied.prediction
    if said is None:
        return _failed(applied.head, applied.failure or _missing(applied.head))
    if isinstance(said, SequencePrediction):
        return HeadPrediction(
            applied.head, applied.version, labels=said.labels, out_of_scope=said.out_of_scope
        )
    try:
        found = entities(text.text, text.tokens.offsets, said.spans)
    except WinnowError as error:
        return _failed(applied.head, error)
    return HeadPrediction(applied.head, applied.version, entities=found)


def _failed(head: str, error: WinnowError) -> HeadPrediction:
    if isinstance(error, NotFoundError):  # where it was looked for is nobody's business
        error = NotFoundError(f"there is no head {quoted(head)} in this ring")
    if not isinstance(error, _TELLING):
        _log.error("a head cannot be applied", head=head, error=str(error), exc_info=error)
        error = UnavailableError(f"head {head} cannot be applied; the server's log has the details")
    return HeadPrediction(head, failure=error)


def _missing(head: str) -> UnavailableError:
    return UnavailableError(f"nothing came back for head {head}")
