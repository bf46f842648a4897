"""When enough was read: no passage that is left is likely to win. Pure.

Passages are read in the order of their distance. What a passage can still reach is bounded by its
distance, which is known, and by the most that the reader is likely to see in it, which is fitted on
training questions (`models.measuring.stopping`).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Stops once the best score so far is out of the reach of the nearest unread passage."""

    reach: float
    """The reader's part of the score that an unread passage is unlikely to exceed."""
    distance_weight: float
    """The weight of the squared distance in the score, at most 0."""

    def safe(self, best: float, distance: float) -> bool:
        """Whether the answer scored `best` may stand, the nearest unread passage being `distance`
        away. Later ones are further away, so they need not be looked at.
        """
        return best >= self.reach + self.distance_weight * distance


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
