"""When enough was read: no passage that is left is likely to win. Pure.

Passages are read in the order of `Hit.hybrid_distance`. A later passage seldom wins where the best
answer so far is sure, where the next passage is far from the question, and where it is much further
than the first was. How much each of these counts is fitted on training questions
(`models.measuring.stopping`).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Stops once score, distance and gap together reach the bar."""

    nearness: float
    """Weight of the nearest unread passage's hybrid distance, at least 0; a score weighs 1."""
    gap: float
    """Weight of how much further that is than the first passage, at least 0."""
    bar: float
    """The higher, the more is read and the less is lost."""
    first_look: int = 1
    """Passages read before looking for the first time whether more are needed."""

    def safe(self, best: float, first: float, unread: float) -> bool:
        """Whether the answer scored `best` may stand, the first passage being `first` away and the
        nearest unread one `unread`. Later ones are further away, so they need not be looked at.
        """
        return best + self.nearness * unread + self.gap * (unread - first) >= self.bar


def wave_ends(passages: int, first: int) -> list[int]:
    """After how many passages to look whether more are needed: `first`, and twice as many each
    time.

    Fewer looks cost fewer round trips, more looks read fewer passages.
    """
    ends = []
    end = first
    while end < passages:
        ends.append(end)
        end *= 2
    return [*ends, passages] if passages else []
