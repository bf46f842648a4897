"""What a reader finds in one window of a text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowReading:
    """The best span of a window or of a sentence in it, and its scores."""

    start: int
    """Start of the span in the text, in code points."""
    end: int
    """End of the span, exclusive; equal to `start` if no span was found."""
    score: float
    """Weighted sum of the next four scores; minus infinity without a span."""
    relevance: float
    """The reader's raw relevance logit of the window."""
    span_score: float
    """Start logit plus end logit of the span."""
    distance: float
    """Squared Euclidean distance between question and text, as the caller of the reader set it."""
    words: float = 0.0
    """Estimated BM25 of the question's words in the window."""
    remembered: bool = False
    """Whether the states of the window were remembered from an earlier read."""
