"""How much of what can be let in one client may have.

Knows what every client has in hand, who came and who was refused lately; does not know what it is.
Everybody gets what they ask for while there is enough; if there is not, all who want more get
equally much (max-min fairness: Bertsekas and Gallager, "Data Networks", section 6.5.2). What a
client wants is not known, but that it wants more than it has is, for a while, once it was refused.

Clients are served in turn (`fair_queue`), so the share of one is also what will be done for it in
a time in which so much can be done for all. With many clients a share is less than the least that
anybody can use: then whoever has nothing gets that least, one after the other (`turns`).
"""

import math
from collections import Counter

from winnow.deadline import Clock
from winnow.policy.recent import RecentKeys
from winnow.policy.refusal_queue import RefusalQueue

_MOST_REMEMBERED = 1_000
"""Clients; keys come from outside, and nobody may fill the memory with them."""


class FairShares:
    """The shares that clients have in hand, by a key of each."""

    def __init__(self, kept: float, here_for: float, hungry_for: float, clock: Clock) -> None:
        """`kept`: share left for newcomers, and for those who were refused, while there are several
        clients.

        `here_for`, `hungry_for`: seconds that it is remembered who came, and who was refused.
        """
        self._kept = kept
        self._held: Counter[str] = Counter()
        self._came = RecentKeys(here_for, _MOST_REMEMBERED, clock)
        self._refused = RecentKeys(hungry_for, _MOST_REMEMBERED, clock)
        self._turns = RefusalQueue(hungry_for, _MOST_REMEMBERED, clock)
        self.total = 0
        """What all have in hand."""

    def take(self, client: str, amount: int) -> None:
        """Gives a client so much more."""
        self._came.add(client)
        self._turns.leave(client)
        self._held[client] += amount
        self.total += amount

    def held(self, client: str) -> int:
        """What a client has in hand."""
        return self._held[client]

    def give_back(self, client: str, amount: int) -> None:
        """Takes it back."""
        self.total -= amount
        self._held[client] -= amount
        if not self._held[client]:
            del self._held[client]

    def refuse(self, client: str, least: int) -> None:
        """Remembers that a client wants more than it has: `least` at least.

        One that has nothing waits for its turn. Not on its first visit: names that are used once
        come to nobody's turn.
        """
        seen = self._came.keys()
        if not self._held[client] and client in seen:
            self._turns.wait(client, least)
        self._came.add(client)
        self._refused.add(client)

    def share(self, client: str, limit: float, beside: float = 0.0) -> float:
        """What a client may have in hand of `limit`, which is what all may have.

        Who has been alone may have everything. Several share all but what is kept; yet each may
        have what it would get with one client more than there are, so that nobody is worse off
        for what is kept than for a newcomer.

        `beside`: what clients that are not known here have in hand; they count as one.
        """
        hungry = self._refused.keys()
        others = (self._held.keys() | hungry) - {client}
        wants = [float("inf") if one in hungry else float(self._held[one]) for one in others]
        wants += [beside] if beside else []
        level = _level(wants, limit * (1 - self._kept_beside(client)))
        return max(level, limit / (len(wants) + 2))

    def room(
        self,
        client: str,
        limit: float,
        whole: float,
        least: int = 1,
        beside: float = 0.0,
        share: float | None = None,
    ) -> float:
        """How much a client may add; not positive if nothing.

        Args:
            client: its key.
            limit: what can be done for all before the client's deadline.
            whole: what all may have in hand.
            least: what is of use to the client at all.
            beside: what clients that are not known here have in hand, as in `share`.
            share: what `share` says of all that, if it was asked already.

        """
        due = self._due_to_others(client, whole, 0.5)
        share = self.share(client, limit, beside) if share is None else share
        room = share - self._held[client]
        if not self._held[client]:
            # what is kept is left alone here: a crowd is slower than one client with as much
            before = self._kept_beside(client) * limit + self._due_to_others(client, limit, 1.0)
            free = whole - before - self.total - beside
            if least <= min(free, self._in_time(client, limit - before, beside)):
                room = max(room, least)
        return min(room, whole - self.total - beside - due)

    def _in_time(self, client: str, limit: float, beside: float) -> float:
        """What can be done for a client if nobody asks for more."""
        held = [float(amount) for one, amount in self._held.items() if one != client]
        return _level([*held, beside], limit)

    def _due_to_others(self, client: str, whole: float, of_new: float) -> int:
        """What must stay free for those whose turn comes before the client's; a name that nobody
        has seen yet leaves a share of what is kept, `of_new`, to the others.
        """
        kept = whole * self._kept_beside(client)
        ahead = self._turns.ahead_of(client, kept)
        seen = self._came.keys()
        return math.floor(ahead if client in seen else max(ahead, kept * of_new))

    def _kept_beside(self, client: str) -> float:
        every = (self._held.keys(), self._refused.keys(), self._came.keys())
        return self._kept if any(len(keys) > (client in keys) for keys in every) else 0.0


def _level(wants: list[float], amount: float) -> float:
    """What one who wants everything gets of `amount` beside others who want so much."""
    left, sharing = amount, len(wants) + 1
    for want in sorted(wants):
        if want > left / sharing:
            break
        left -= want
        sharing -= 1
    return left / sharing
