"""Any number of texts as requests of a few, without the texts that the server refuses."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from winnow.client import Predictions, TextPrediction
from winnow.errors import InvalidRequestError, Violation

MOST = 16
"""Texts of a request."""
_FIELD = re.compile(r"texts\[(\d+)\]")
Ask = Callable[[Sequence[str]], Predictions]


def batches(texts: Iterable[str], most: int = MOST) -> Iterator[list[str]]:
    """The texts in order, up to `most` at a time."""
    left = iter(texts)
    while batch := list(islice(left, most)):
        yield batch


def predicted(
    batch: Sequence[str], ask: Ask, refused: Callable[[str, str], None]
) -> tuple[TextPrediction, ...]:
    """The predictions for a batch. A text that the server refuses does not fail the others.

    Args:
        batch: at most 16 texts.
        ask: asks for all texts at once.
        refused: called with a text that was refused, and the reason.

    Raises:
        WinnowError: the request failed for another reason than its texts.

    """
    try:
        return ask(batch).results
    except InvalidRequestError as error:
        wrong = dict(_of_texts(error.violations))
        if not wrong or len(wrong) < len(error.violations):
            raise
        for number, why in wrong.items():
            refused(batch[number], why)
        rest = [text for number, text in enumerate(batch) if number not in wrong]
        return predicted(rest, ask, refused) if rest else ()


def _of_texts(violations: Sequence[Violation]) -> Iterator[tuple[int, str]]:
    for each in violations:
        if found := _FIELD.fullmatch(each.field):
            yield int(found[1]), each.description
