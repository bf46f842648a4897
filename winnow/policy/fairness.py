"""Shares what can be let in among clients.

Knows how much every client has in hand, and which ones came or were refused lately; does not know
what is shared. Every client gets what it asks for while there is enough. If there is not, all that
want more get equally much (max-min fairness: Bertsekas and Gallager, "Data Networks", section
6.5.2). How much a client wants is not known. For a while after a refusal it is known to want more.

Clients are served in turn (`fair_queue`), so a client's share is also what will be done for it in
the time in which the whole can be done. With many clients a share is less than the least that is
of use. Then clients that have nothing get that least, one after the other (`refusal_queue`).
"""

import math
from collections import Counter

from winnow.deadline import Clock
from winnow.policy.recent import RecentKeys
from winnow.policy.refusal_queue import RefusalQueue

_MOST_REMEMBERED = 1_000
"""Most clients; keys come from outside, and must not fill the memory."""


class FairShares:
    """The shares that clients have in hand, by a key of each."""

    def __init__(self, kept: float, here_for: float, hungry_for: float, clock: Clock) -> None:
        """`kept`: share left for new and for refused clients, while there are several clients;
        `here_for`, `hungry_for`: seconds for which it is remembered that a client came, and that it
        was refused.
        """
        self._kept = kept
        self._held: Counter[str] = Counter()
        self._came = RecentKeys(here_for, _MOST_REMEMBERED, clock)
        self._refused = RecentKeys(hungry_for, _MOST_REMEMBERED, clock)
        self._turns = RefusalQueue(hungry_for, _MOST_REMEMBERED, clock)
        self.total = 0
        """Amount that all clients have in hand."""

    def take(self, client: str, amount: int) -> None:
        """Gives a client `amount` more."""
        self._came.add(client)
        self._turns.leave(client)
        self._held[client] += amount
        self.total += amount

    def held(self, client: str) -> int:
        """Amount that a client has in hand."""
        return self._held[client]

    def give_back(self, client: str, amount: int) -> None:
        """Takes `amount` back from a client."""
        self.total -= amount
        self._held[client] -= amount
        if not self._held[client]:
            del self._held[client]

    def refuse(self, client: str, least: int) -> None:
        """Remembers that a client wants more than it has: `least` at least.

        A client that has nothing waits for its turn, except on its first visit: a name that is used
        once gets no turn.
        """
        seen = self._came.keys()
        if not self._held[client] and client in seen:
            self._turns.wait(client, least)
        self._came.add(client)
        self._refused.add(client)

    def share(self, client: str, limit: float, beside: float = 0.0) -> float:
        """Amount that a client may have in hand of `limit`, which all may have.

        A client that has been alone may have everything. Several share all but the kept share. Yet
        each may have what it would get with one client more, so that no client loses more by the
        kept share than by a new client.

        `beside`: amount that clients not known here have in hand; they count as one.
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
        """Amount that a client may add; not positive if none.

        Args:
            client: key of the client.
            limit: amount that can be done for all before the client's deadline.
            whole: amount that all may have in hand.
            least: least amount that is of use to the client.
            beside: amount that clients not known here have in hand, as in `share`.
            share: result of `share` for these, if it is known already.

        """
        due = self._due_to_others(client, whole, 0.5)
        share = self.share(client, limit, beside) if share is None else share
        room = share - self._held[client]
        if not self._held[client]:
            # the kept share is not used here: many clients are slower than one with as much
            before = self._kept_beside(client) * limit + self._due_to_others(client, limit, 1.0)
            free = whole - before - self.total - beside
            if least <= min(free, self._in_time(client, limit - before, beside)):
                room = max(room, least)
        return min(room, whole - self.total - beside - due)

    def _in_time(self, client: str, limit: float, beside: float) -> float:
        """Amount that can be done for a client if no other asks for more."""
        held = [float(amount) for one, amount in self._held.items() if one != client]
        return _level([*held, beside], limit)

    def _due_to_others(self, client: str, whole: float, of_new: float) -> int:
        """Amount that must stay free for clients whose turn comes first. A new name leaves a share
        of the kept amount, `of_new`, to the others.
        """
        kept = whole * self._kept_beside(client)
        ahead = self._turns.ahead_of(client, kept)
        seen = self._came.keys()
        return math.floor(ahead if client in seen else max(ahead, kept * of_new))

    def _kept_beside(self, client: str) -> float:
        every = (self._held.keys(), self._refused.keys(), self._came.keys())
        return self._kept if any(len(keys) > (client in keys) for keys in every) else 0.0


def _level(wants: list[float], amount: float) -> float:
    """Amount that a client that wants everything gets beside others with these `wants`."""
    left, sharing = amount, len(wants) + 1
    for want in sorted(wants):
        if want > left / sharing:
            break
        left -= want
        sharing -= 1
    return left / sharing
