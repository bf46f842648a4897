"""The reader's result for a passage, and the order in which readings are ranked."""

import math
from dataclasses import dataclass, field

from winnow.domain.passage import Passage
from winnow.domain.shard_call import NEVER, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One passage, its best span, and its scores."""

    passage: Passage
    start: int
    """Start of the answer in the passage's text, in code points."""
    end: int
    """End of the answer, exclusive; equal to `start` if no span was found."""
    score: float
    """Weighted sum of the next three scores; comparable across shards."""
    relevance: float
    """The reader's raw relevance logit."""
    span_score: float
    """Start logit plus end logit of the span."""
    distance: float
    """Squared Euclidean distance between question and passage."""
    hybrid_distance: float
    """The distance by which the passage was retrieved; see `Hit.hybrid_distance`."""
    words: float = 0.0
    """BM25 of the question's words in the passage."""
    late_interaction: bool = False
    """Whether the passage was ranked by late interaction, on which the score depends, too."""
    span: Interval = field(default=NEVER, compare=False)
    """When the passage was read, within the call to the shard. Ignored by comparisons."""

    @property
    def answer(self) -> str:
        """The answer: a substring of the passage, character for character."""
        return self.passage.text[self.start : self.end]


def rank(reading: Reading) -> tuple[bool, float, bool, float, str]:
    """Sort key, best reading first: by score, span score, then passage id; NaN last.

    The order is total over the passages of an index, so the result of a merge does not depend on
    which shard replies first.
    """
    return (
        math.isnan(reading.score),
        0.0 if math.isnan(reading.score) else -reading.score,
        math.isnan(reading.span_score),
        0.0 if math.isnan(reading.span_score) else -reading.span_score,
        reading.passage.id,
    )
