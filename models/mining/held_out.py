"""Tells which questions no model may be trained on.

Some training questions are held out for calibration. A reader is surer of questions that it was
trained on, so weights and thresholds fitted on those questions would be wrong for others. Whole
articles are held out by a hash of their title, so every step holds out the same articles. Passages
without a title are held out one by one: other passages of their article may be trained on.
"""

from collections.abc import Sequence
from zlib import crc32

from models.data import Passage, Question
from winnow.text.scores import normalise

_HELD_OUT_ONE_IN = 16


def exclude_questions(
    questions: Sequence[Question], excluded: Sequence[Question]
) -> list[Question]:
    """Returns the questions that are not in `excluded`. Ignores case and punctuation."""
    known = {normalise(question.text) for question in excluded}
    return [question for question in questions if normalise(question.text) not in known]


def is_held_out(passage: Passage) -> bool:
    """Returns whether questions about this passage's article are held out from training."""
    return crc32((passage.title or passage.text).encode()) % _HELD_OUT_ONE_IN == 0
