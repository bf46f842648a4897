"""Scores of texts that callers send. Pure.

The retrieval of an index also finds the distance between question and passage, which is a part of
the score and of the confidence. A text that a caller sends has no distance: to compute it, the
encoder would have to read the text, too. So every text gets the same distance.
"""

import math
from dataclasses import dataclass

ASSUMED_DISTANCE = 0.8
"""Distance of every text. The median distance of passages that answer a question is 0.76 for
Natural Questions and 0.88 for SQuAD.
"""
_LOGIT, _WORDS, _BIAS = 0.248, 2.216, -2.602
"""Weights of a window's relevance. They were fitted by logistic regression, so that the result is
the probability that a retrieved passage contains the answer (docs/measurements/reading.md).
"""


@dataclass(frozen=True, slots=True)
class WindowRelevance:
    """What the relevance of a window depends on."""

    logit: float
    """The reader's raw relevance logit; minus infinity for a window without words."""
    words: float
    """The question's words in the window, as `QuestionWords.share` returns them."""
    remembered: bool = False
    """Whether the states of the window were remembered from an earlier read."""

    @property
    def odds(self) -> float:
        """Logarithm of the odds that the window has an answer. Not a number if the logit is not."""
        return _LOGIT * self.logit + _WORDS * self.words + _BIAS


def relevance_score(odds: float) -> float:
    """Maps the odds of a text's best window to 0 to 1, in the same order; 0 if not a number."""
    return 0.0 if math.isnan(odds) else 0.5 + 0.5 * math.tanh(odds / 2)


def highest(values: list[float]) -> float:
    """Returns the highest value, without those that are not numbers; minus infinity for none."""
    return max((each for each in values if not math.isnan(each)), default=float("-inf"))
