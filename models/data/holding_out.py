"""Training questions that no model trains on, to calibrate with.

A reader is surer of what it has seen; weights and thresholds fitted on that would be wrong for
every other question. Whole articles are held out, by a hash of their title, so that every step
holds out the same ones.
"""

from collections.abc import Sequence
from zlib import crc32

from models.data.rows import Passage
from models.mining.mine import TrainingQuestion

ONE_IN = 16


def split(
    questions: Sequence[TrainingQuestion], passages: Sequence[Passage]
) -> tuple[list[TrainingQuestion], list[TrainingQuestion]]:
    """The questions to learn from, and those held out: about one article in sixteen."""
    sides: tuple[list[TrainingQuestion], list[TrainingQuestion]] = ([], [])
    for question in questions:
        sides[is_held_out(passages[question.positive])].append(question)
    return sides


def is_held_out(passage: Passage) -> bool:
    """Whether questions about this passage's article are kept from training."""
    return crc32((passage.title or passage.text).encode()) % ONE_IN == 0
