"""Scores of texts that callers send. Pure.

The retrieval of an index also finds the distance between question and passage, which is a part of
the score and of the confidence. A text that a caller sends has no distance: to compute it, the
encoder would have to read the text, too. So every text gets the same distance.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from winnow.domain.calibration import AnswerCalibration
from winnow.domain.text_relevance import TextRelevance

ASSUMED_DISTANCE = 0.8
"""Distance of every text. The median distance of passages that answer a question is 0.76 for
Natural Questions and 0.88 for SQuAD.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScores:
    """The calibrated figures of a bundle by which texts are judged."""

    answers: AnswerCalibration
    relevance: TextRelevance


@dataclass(frozen=True, slots=True)
class WindowRelevance:
    """What the relevance of a window depends on."""

    logit: float
    """The reader's raw relevance logit; minus infinity for a window without words."""
    words: float
    """The question's words in the window, as `QuestionWords.share` returns them."""
    remembered: bool = False
    """Whether the states of the window were remembered from an earlier read."""


def relevance_score(odds: float) -> float:
    """Maps the odds of a text's best window to 0 to 1, in the same order; 0 if not a number."""
    return 0.0 if math.isnan(odds) else 0.5 + 0.5 * math.tanh(odds / 2)


def best_odds(windows: Iterable[WindowRelevance], weights: TextRelevance) -> float:
    """Returns the logarithm of the odds that the best window contains the answer."""
    return highest([weights.odds(each.logit, each.words) for each in windows])


def highest(values: list[float]) -> float:
    """Returns the highest value, without those that are not numbers; minus infinity for none."""
    return max((each for each in values if not math.isnan(each)), default=float("-inf"))
