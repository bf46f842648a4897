"""The relevance of a text that a caller sends: how likely it contains the answer. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRelevance:
    """A logistic regression on the reader's relevance logit and the words of the question."""

    logit: float
    """Weight of the reader's raw relevance logit."""
    words: float
    """Weight of the question's words in the text, as `QuestionWords.share` returns them."""
    bias: float

    def odds(self, logit: float, words: float) -> float:
        """Returns the logarithm of the odds that a text contains the answer.

        Not a number if the logit is not.
        """
        return self.logit * logit + self.words * words + self.bias


FALLBACK = TextRelevance(logit=0.248, words=2.216, bias=-2.602)
"""Weights of bundles that have none. They were fitted to the reader of minilm-l6 3.0.0
(docs/measurements/reading.md).
"""
