"""Splits texts into requests, and repeats a request without its refused texts."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from winnow.client import Predictions, TextPrediction
from winnow.errors import InvalidRequestError, Violation

MAX_TEXTS = 16
"""Maximum number of texts in a request."""
_FIELD = re.compile(r"texts\[(\d+)\]")
Ask = Callable[[Sequence[str]], Predictions]
"""A function that sends one request for several texts. It raises WinnowError if that fails."""


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Splits texts into lists of at most `MAX_TEXTS`."""
    remaining = iter(texts)
    while batch := list(islice(remaining, MAX_TEXTS)):
        yield batch


def predict_batch(
    batch: Sequence[str], ask: Ask, on_refusal: Callable[[str, str], None]
) -> tuple[TextPrediction, ...]:
    """Predicts a batch. A refused text does not fail the others.

    Args:
        batch: at most `MAX_TEXTS` texts.
        ask: sends one request for all texts.
        on_refusal: called with each refused text, and the reason.

    Raises:
        WinnowError: the request failed for a reason other than its texts.

    """
    try:
        return ask(batch).results
    except InvalidRequestError as error:
        reasons = dict(_text_violations(error.violations))
        if not reasons or len(reasons) < len(error.violations):
            raise
        for number, reason in reasons.items():
            on_refusal(batch[number], reason)
        accepted = [text for number, text in enumerate(batch) if number not in reasons]
        return predict_batch(accepted, ask, on_refusal) if accepted else ()


def _text_violations(violations: Sequence[Violation]) -> Iterator[tuple[int, str]]:
    """The index and the problem of each text that breaks a rule."""
    for each in violations:
        if match := _FIELD.fullmatch(each.field):
            yield int(match[1]), each.description
