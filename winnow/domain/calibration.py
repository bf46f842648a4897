"""The calibrated figures of a bundle by which answers are judged. Pure."""

from dataclasses import dataclass

from winnow.domain.confidence import Confidence, SpanScores
from winnow.domain.threshold import AnswerThreshold


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCalibration:
    """Decides how likely a span or its sentence is right, and whether it is an answer."""

    threshold: AnswerThreshold
    """What the best span must reach to be an answer."""
    confidence: Confidence | None = None
    """None if it was not fitted."""
    sentence_confidence: Confidence | None = None
    """None if it was not fitted."""

    def span_confidence(self, reading: SpanScores) -> float | None:
        """Returns the probability that the span is right; None without a calibration."""
        return None if self.confidence is None else self.confidence.of(reading)

    def confidence_of_sentence(self, reading: SpanScores) -> float | None:
        """Returns the probability that the sentence of the span contains the right answer.

        None without a calibration.
        """
        return None if self.sentence_confidence is None else self.sentence_confidence.of(reading)
