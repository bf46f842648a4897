"""How many passages a question takes to answer that stops early, by what others took.

Knows numbers of passages; does not know what made reading stop.
"""

import math

_WEIGHT = 0.05
"""Of the newest question in the mean: the last fifty or so count."""
_ROUNDING = 1e-9


class UsualReads:
    """The mean of questions with the usual number of passages; all of these, at first."""

    def __init__(self, passages: int) -> None:
        """`passages`: the usual number, of which the fewest are needed where reading stops."""
        self.passages = passages
        self.mean = float(passages)

    def took(self, needed: int) -> None:
        """A question with the usual number of passages needed so many of them."""
        self.mean += (min(needed, self.passages) - self.mean) * _WEIGHT

    def expected(self, passages: int) -> int:
        """Reads to reckon with for a question that may read so many; never more than these.

        Whoever may read fewer stops as late, if that is early enough, and whoever may read more
        needs a smaller share of them: both are reckoned too high rather than too low.
        """
        share = self.mean / self.passages
        reads = self.mean if passages < self.passages else passages * share
        return min(passages, max(math.ceil(reads - _ROUNDING), 1))
