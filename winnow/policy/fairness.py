"""Shares a limited amount of work fairly among clients.

Knows the amount of work in flight of every client, and which clients were seen or refused recently;
does not know what the work is. While there is enough, every client gets what it requests. Otherwise
all clients that want more get equal amounts (max-min fairness: Bertsekas and Gallager, "Data
Networks", section 6.5.2). The demand of a client is unknown, so a recently refused client counts as
wanting more.

Workers serve clients in turn (`fair_queue`). So when work of the amount `limit` is done, the share
of each client is done. With many clients, a share is less than the smallest useful amount. Then
clients without work in flight get that amount one after the other (`refusal_queue`).
"""

import math
from collections import Counter

from winnow.deadline import Clock
from winnow.policy.recent import RecentKeys
from winnow.policy.refusal_queue import RefusalQueue

_MAX_CLIENTS = 1_000
"""Maximum number of remembered clients. Bounds memory, because callers choose the keys."""


class FairShares:
    """The amount of work in flight of each client, and its fair share."""

    def __init__(
        self, reserved_share: float, presence_seconds: float, refusal_seconds: float, clock: Clock
    ) -> None:
        """Begins without work in flight.

        `reserved_share`: share of the limit that is reserved for new and refused clients while
        there are several clients. `presence_seconds`, `refusal_seconds`: how long a request or a
        refusal is remembered.
        """
        self._reserved_share = reserved_share
        self._amounts: Counter[str] = Counter()
        self._recent_clients = RecentKeys(presence_seconds, _MAX_CLIENTS, clock)
        self._refused = RecentKeys(refusal_seconds, _MAX_CLIENTS, clock)
        self._waiting_clients = RefusalQueue(refusal_seconds, _MAX_CLIENTS, clock)
        self.total = 0
        """Amount in flight of all clients."""

    def take(self, client: str, amount: int) -> None:
        """Adds `amount` to the work in flight of a client."""
        self._recent_clients.add(client)
        self._waiting_clients.leave(client)
        self._amounts[client] += amount
        self.total += amount

    def in_flight(self, client: str) -> int:
        """Amount in flight of a client."""
        return self._amounts[client]

    def release(self, client: str, amount: int) -> None:
        """Subtracts `amount` from the work in flight of a client."""
        self.total -= amount
        self._amounts[client] -= amount
        if not self._amounts[client]:
            del self._amounts[client]

    def refuse(self, client: str, min_amount: int) -> None:
        """Records that a client, which wants at least `min_amount` more, was refused.

        A client without work in flight is then queued for its turn. This excludes a client that was
        not seen recently, because keys that are used only once must not get turns.
        """
        recent = self._recent_clients.keys()
        if not self._amounts[client] and client in recent:
            self._waiting_clients.wait(client, min_amount)
        self._recent_clients.add(client)
        self._refused.add(client)

    def share(self, client: str, limit: float, elsewhere: float = 0.0) -> float:
        """Returns how much a client may have in flight, of the `limit` for all clients.

        A client that has been alone may have everything. Several clients share everything except
        the reserve. But each client may have at least what it would get if there were one more
        client, so the reserve costs it no more than a new client would.

        `elsewhere`: amount in flight that is not counted here; treated as one more client.
        """
        refused_clients = self._refused.keys()
        others = (self._amounts.keys() | refused_clients) - {client}
        demands = [math.inf if c in refused_clients else float(self._amounts[c]) for c in others]
        demands += [elsewhere] if elsewhere else []
        level = _level(demands, limit * (1 - self._reserved_share_for(client)))
        return max(level, limit / (len(demands) + 2))

    def room(
        self,
        client: str,
        limit: float,
        capacity: float,
        min_amount: int = 1,
        elsewhere: float = 0.0,
        share: float | None = None,
    ) -> float:
        """Returns the amount that a client may add; 0 or less if none.

        Args:
            client: key of the client.
            limit: amount that can be done for all clients before this client's deadline.
            capacity: amount that all clients may have in flight.
            min_amount: smallest amount that is useful to the client.
            elsewhere: amount in flight that is not counted here, as in `share`.
            share: result of `share`, if it is already known.

        """
        due_amount = self._due_to_others(client, capacity, 0.5)
        share = self.share(client, limit, elsewhere) if share is None else share
        room = share - self._amounts[client]
        if not self._amounts[client]:
            # keeps the reserve free: many clients are slower than one client with the same amount
            before = self._reserved_share_for(client) * limit + self._due_to_others(
                client, limit, 1.0
            )
            free = capacity - before - self.total - elsewhere
            if min_amount <= min(free, self._possible_amount(client, limit - before, elsewhere)):
                room = max(room, min_amount)
        return min(room, capacity - self.total - elsewhere - due_amount)

    def _possible_amount(self, client: str, limit: float, elsewhere: float) -> float:
        """Returns the amount that can be done for a client if no other client adds work."""
        amounts = [float(amount) for c, amount in self._amounts.items() if c != client]
        return _level([*amounts, elsewhere], limit)

    def _due_to_others(self, client: str, capacity: float, share_of_new: float) -> int:
        """Returns the amount that must stay free for clients whose turn comes first.

        A new client leaves at least the fraction `share_of_new` of the reserve to others.
        """
        reserved = capacity * self._reserved_share_for(client)
        ahead = self._waiting_clients.ahead_of(client, reserved)
        recent = self._recent_clients.keys()
        return math.floor(ahead if client in recent else max(ahead, reserved * share_of_new))

    def _reserved_share_for(self, client: str) -> float:
        """Returns the share of the capacity that is reserved for new clients.

        It is 0 if `client` is the only client.
        """
        client_sets = (self._amounts.keys(), self._refused.keys(), self._recent_clients.keys())
        has_others = any(len(keys) > (client in keys) for keys in client_sets)
        return self._reserved_share if has_others else 0.0


def _level(demands: list[float], amount: float) -> float:
    """Returns what a client with unlimited demand gets, by max-min fairness, among `demands`."""
    remaining, clients = amount, len(demands) + 1
    for demand in sorted(demands):
        if demand > remaining / clients:
            break
        remaining -= demand
        clients -= 1
    return remaining / clients
