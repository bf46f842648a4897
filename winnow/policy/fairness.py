"""How much of what can be let in one client may have.

Knows what every client has in hand, who came and who was refused lately; does not know what it is.
Everybody gets what they ask for while there is enough; if there is not, all who want more get
equally much (max-min fairness: Bertsekas and Gallager, "Data Networks", section 6.5.2). What a
client wants is not known, but that it wants more than it has is, for a while, once it was refused.
"""

from collections import Counter

from winnow.deadline import Clock
from winnow.policy.recent import RecentKeys

_MOST_REMEMBERED = 1_000
"""Clients; keys come from outside, and nobody may fill the memory with them."""


class FairShares:
    """The shares that clients have in hand, by a key of each."""

    def __init__(self, kept: float, here_for: float, hungry_for: float, clock: Clock) -> None:
        """`kept`: share left for newcomers while there are several clients.

        `here_for`, `hungry_for`: seconds that it is remembered who came, and who was refused.
        """
        self._kept = kept
        self._held: Counter[str] = Counter()
        self._came = RecentKeys(here_for, _MOST_REMEMBERED, clock)
        self._refused = RecentKeys(hungry_for, _MOST_REMEMBERED, clock)
        self.total = 0
        """What all have in hand."""

    def take(self, client: str, amount: int) -> None:
        """Gives a client so much more."""
        self._came.add(client)
        self._held[client] += amount
        self.total += amount

    def give_back(self, client: str, amount: int) -> None:
        """Takes it back."""
        self.total -= amount
        self._held[client] -= amount
        if not self._held[client]:
            del self._held[client]

    def refuse(self, client: str) -> None:
        """Remembers that a client wants more than it has."""
        self._came.add(client)
        self._refused.add(client)

    def room(self, client: str, limit: float) -> float:
        """How much a client may add, if all may have `limit`; not positive if nothing.

        Who has been alone may have everything. Several share all but what is kept; yet each may
        have what it would get with one client more than there are, so that nobody is worse off
        for what is kept than for a newcomer.
        """
        hungry = self._refused.keys()
        others = (self._held.keys() | hungry) - {client}
        wants = [float("inf") if one in hungry else float(self._held[one]) for one in others]
        kept = self._kept if others or self._came.keys() - {client} else 0.0
        share = max(_level(wants, limit * (1 - kept)), limit / (len(others) + 2))
        return min(share - self._held[client], limit - self.total)


def _level(wants: list[float], amount: float) -> float:
    """What one who wants everything gets of `amount` beside others who want so much."""
    left, sharing = amount, len(wants) + 1
    for want in sorted(wants):
        if want > left / sharing:
            break
        left -= want
        sharing -= 1
    return left / sharing
