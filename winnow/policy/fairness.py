"""How much of what can be let in one client may have.

Knows what every client has in hand and who was refused lately; does not know what it is. Everybody
gets what they ask for while there is enough; if there is not, all who want more get equally much
(max-min fairness: Bertsekas and Gallager, "Data Networks", section 6.5.2). What a client wants is
not known, but that it wants more than it has is, for a while, once it was refused.
"""

from collections import Counter

from winnow.deadline import Clock

_MOST_REMEMBERED = 1_000
"""Refused clients; keys come from outside, and nobody may fill the memory with them."""


class FairShares:
    """The shares that clients have in hand, by a key of each."""

    def __init__(self, kept: float, hungry_for: float, clock: Clock) -> None:
        """`kept`: share left for newcomers; `hungry_for`: seconds that a refusal is remembered."""
        self._kept, self._hungry_for, self._clock = kept, hungry_for, clock
        self._held: Counter[str] = Counter()
        self._refused: dict[str, float] = {}
        """When each was refused last, the oldest first."""
        self.total = 0
        """What all have in hand."""

    def take(self, client: str, amount: int) -> None:
        """Gives a client so much more."""
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
        self._refused.pop(client, None)
        if len(self._refused) == _MOST_REMEMBERED:
            del self._refused[next(iter(self._refused))]
        self._refused[client] = self._clock()

    def room(self, client: str, limit: float) -> float:
        """How much a client may add, if all may have `limit`; not positive if nothing.

        Clients share all but what is kept. Yet each may have what it would get with one client
        more than there are, so that nobody is worse off for what is kept than for a newcomer.
        """
        hungry = self._hungry()
        others = (self._held.keys() | hungry) - {client}
        wants = [float("inf") if one in hungry else float(self._held[one]) for one in others]
        share = max(_level(wants, limit * (1 - self._kept)), limit / (len(others) + 2))
        return min(share - self._held[client], limit - self.total)

    def _hungry(self) -> set[str]:
        horizon = self._clock() - self._hungry_for
        while self._refused and self._refused[next(iter(self._refused))] <= horizon:
            del self._refused[next(iter(self._refused))]
        return set(self._refused)


def _level(wants: list[float], amount: float) -> float:
    """What one who wants everything gets of `amount` beside others who want so much."""
    left, sharing = amount, len(wants) + 1
    for want in sorted(wants):
        if want > left / sharing:
            break
        left -= want
        sharing -= 1
    return left / sharing
