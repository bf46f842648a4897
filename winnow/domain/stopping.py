"""Early stopping: ends reading when no unread passage is likely to have the best answer. Pure.

Passages are read in the order of `Hit.hybrid_distance`. A later passage seldom wins if the best
answer so far has a high score, and if the next passage is far from the question and much further
than the first one. The weights are fitted on training questions by
`models.measuring.early_stopping`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Stops once the weighted sum of score, distance and gap reaches a threshold."""

    nearness: float
    """Weight of the nearest unread passage's hybrid distance, at least 0. The score weighs 1."""
    gap: float
    """Weight of the gap between the distances of that passage and of the first one, at least 0."""
    bar: float
    """Threshold: a higher one reads more passages and loses less accuracy."""
    first_look: int = 1
    """Number of passages read before the first check."""

    def safe(self, best: float, first: float, unread: float) -> bool:
        """Whether reading may stop. The nearest unread passage decides; others are further away.

        `best`: best score so far. `first`, `unread`: hybrid distances of the first passage and of
        the nearest unread one.
        """
        return best + self.nearness * unread + self.gap * (unread - first) >= self.bar


def wave_ends(passages: int, first: int) -> list[int]:
    """The counts of read passages at which to check the stopping rule: `first`, then doubling.

    Fewer checks cost fewer round trips; more checks read fewer passages.
    """
    ends = []
    end = first
    while end < passages:
        ends.append(end)
        end *= 2
    return [*ends, passages] if passages else []
