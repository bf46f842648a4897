"""Decides whether the best answer of a question is shown as an answer. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnswerThreshold:
    """What an answer must reach; otherwise the question is refused."""

    score: float
    """Minimum score of the answer."""
    confidence: float | None = None
    """Minimum confidence of the span, 0 to 1. If it is set, the score does not count."""

    def accepts(self, score: float, confidence: float | None) -> bool:
        """Whether an answer with this score and confidence reaches the threshold."""
        if self.confidence is None or confidence is None:
            return score >= self.score
        return confidence >= self.confidence
