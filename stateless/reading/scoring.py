"""Scores of texts that callers send. Pure.

The retrieval of an index also finds the distance between question and passage, which is a part of
the score and of the confidence. A text that a caller sends has no distance: to compute it, the
encoder would have to read the text, too. So every text gets the same distance.
"""

import math
from dataclasses import dataclass

from winnow.domain.confidence import Confidence
from winnow.domain.threshold import AnswerThreshold
from winnow.reading.window_reading import WindowReading

ASSUMED_DISTANCE = 0.8
"""Distance of every text. The median distance of passages that answer a question is 0.76 for
Natural Questions and 0.88 for SQuAD.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingScores:
    """The calibrated figures of a bundle."""

    threshold: AnswerThreshold
    """What the best span must reach to be an answer."""
    confidence: Confidence | None = None
    sentence_confidence: Confidence | None = None

    def span_confidence(self, reading: WindowReading) -> float | None:
        """Returns the probability that the span is right; None without a calibration."""
        return None if self.confidence is None else self.confidence.of(reading)

    def confidence_of_sentence(self, reading: WindowReading) -> float | None:
        """Returns the probability that the sentence of the span contains the right answer."""
        return None if self.sentence_confidence is None else self.sentence_confidence.of(reading)


def relevance_score(relevance: float) -> float:
    """Maps a relevance logit to 0 to 1, in the same order. 0 if it is not a number."""
    return 0.0 if math.isnan(relevance) else 0.5 + 0.5 * math.tanh(relevance / 2)


def highest(values: list[float]) -> float:
    """Returns the highest value, without those that are not numbers; minus infinity for none."""
    return max((each for each in values if not math.isnan(each)), default=float("-inf"))
