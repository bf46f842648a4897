"""The sizes of an answer: which part of a passage is shown first. Pure."""

from enum import Enum

_MIN_GAIN = 0.2
"""How much surer the sentence must be than the span, to be shown instead of the span."""
_LIKELY = 0.4
"""Confidence from which the span is always shown."""


class AnswerSize(Enum):
    """Which part of the passage is shown as the answer."""

    AUTO = "auto"
    """The span; or the sentence, if the span is unlikely and the sentence much surer, or if the
    question asks for several things and the span is in a list.
    """
    SPAN = "span"
    """The words that the reader chose."""
    SENTENCE = "sentence"
    """The sentence, list item or table row that contains the span, or the list for a question that
    asks for several things.
    """
    PASSAGE = "passage"
    """The whole passage."""


def choose_size(
    requested: AnswerSize,
    confidence: float | None,
    sentence_confidence: float | None,
    *,
    is_list: bool = False,
) -> AnswerSize:
    """Returns the size to show: SPAN, SENTENCE or PASSAGE.

    Args:
        requested: size that the question requested.
        confidence: probability that the span is right; None if unknown.
        sentence_confidence: probability that the sentence has the answer; None if unknown.
        is_list: whether the question asks for several things and the sentence is a list.

    """
    if requested is not AnswerSize.AUTO:
        return requested
    is_surer = (
        confidence is not None
        and sentence_confidence is not None
        and confidence < _LIKELY
        and sentence_confidence - confidence >= _MIN_GAIN
    )
    return AnswerSize.SENTENCE if is_list or is_surer else AnswerSize.SPAN
