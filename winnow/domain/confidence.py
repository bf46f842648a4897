"""How likely an answer is right.

A logistic regression on the figures of one reading. `winnow models calibrate` fits it on questions
that no model has seen, each of them twice: as it is, and without the passages that contain its
answer. Pure.
"""

import math
from dataclasses import dataclass

from winnow.domain.reading import Reading


@dataclass(frozen=True, slots=True)
class Confidence:
    """Weights of a reading's relevance, span score and distance, and what is added to them."""

    relevance: float
    span: float
    distance: float
    bias: float

    def of(self, reading: Reading) -> float:
        """The probability that the reading's span answers the question: 0 to 1.

        0 where there is no span, and where a figure is not a number.
        """
        if reading.end <= reading.start:
            return 0.0
        odds = (
            self.relevance * reading.relevance
            + self.span * reading.span_score
            + self.distance * reading.distance
            + self.bias
        )
        # the halved tangent is the logistic function, without its overflow
        return 0.0 if math.isnan(odds) else 0.5 + 0.5 * math.tanh(odds / 2)
