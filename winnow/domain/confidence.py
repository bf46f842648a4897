"""The probability that an answer is right, for each size of the answer. Pure.

Each probability is a logistic regression on the scores of one reading. `winnow models calibrate`
fits it on questions that no model was trained on. Each question is asked twice: with all passages,
and without the passages that contain its answer.
"""

import math
from dataclasses import dataclass
from typing import Protocol


class SpanScores(Protocol):
    """A span of a text, and its scores: a `Reading` or the reading of a window."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def relevance(self) -> float: ...
    @property
    def span_score(self) -> float: ...
    @property
    def distance(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Confidence:
    """The weights of a reading's relevance, span score and distance, and the bias."""

    relevance: float
    span: float
    distance: float
    bias: float

    def of(self, reading: SpanScores) -> float:
        """The probability that the reading's span answers the question: 0 to 1.

        0 if there is no span, or if a score is not a number.
        """
        if reading.end <= reading.start:
            return 0.0
        odds = (
            self.relevance * reading.relevance
            + self.span * reading.span_score
            + self.distance * reading.distance
            + self.bias
        )
        # equals the logistic function, but does not overflow
        return 0.0 if math.isnan(odds) else 0.5 + 0.5 * math.tanh(odds / 2)
