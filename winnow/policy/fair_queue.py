"""Decides which client has the next turn if several clients wait for the same workers.

Knows the key and the waiting entries of each client; does not know what an entry is. Two rules
alternate:

- Round robin (Nagle, "On packet switches with infinite storage", 1987): each of n waiting clients
  gets at least every 2n-th turn, however many entries the others have. A client that had no waiting
  entries joins at the end of the round.
- Favour: the known client with the fewest recent turns (`usage`) is next, if it had clearly fewer
  turns than others, or if most waiting clients are new. Otherwise the round continues. So a client
  with little work precedes clients that always wait, and clients that are seen only once get at
  most every other turn. A new client becomes known at its first turn. It then counts as having as
  many turns as the most active client.

The entries of one client are first in, first out.
"""

from collections import deque
from typing import Generic, TypeVar

from winnow.policy.usage import Usage

Entry = TypeVar("Entry")


class FairQueue(Generic[Entry]):
    """The waiting entries of each client, and the recent turns of all known clients."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[Entry]] = {}
        """Waiting entries by client, in the order of the round."""
        self._usage = Usage()
        self._favour_next = False
        """Whether the favour rule decides the next turn."""

    def __len__(self) -> int:
        """Number of waiting entries."""
        return sum(map(len, self._lines.values()))

    def add(self, client: str, entry: Entry) -> None:
        """Appends an entry to the line of its client."""
        self._lines.setdefault(client, deque()).append(entry)

    def put_back(self, client: str, entry: Entry) -> None:
        """Puts an entry that needs another turn back at the head of the line of its client."""
        self._lines.setdefault(client, deque()).appendleft(entry)

    def take(self) -> tuple[str, Entry] | None:
        """Removes the next entry, and returns it with its client; None if no entry waits.

        Takes time proportional to the number of waiting clients.
        """
        if not self._lines:
            return None
        favoured = self._favoured_client() if self._favour_next else None
        client = self._next_of_round() if favoured is None else favoured
        self._favour_next = not self._favour_next
        self._usage.add(client)
        entry = self._lines[client].popleft()
        if not self._lines[client]:
            del self._lines[client]
        return client, entry

    def remove(self, client: str, entry: Entry) -> bool:
        """Removes a waiting entry; returns False if there is no such entry."""
        line = self._lines.get(client)
        if line is None or entry not in line:
            return False
        line.remove(entry)
        if not line:
            del self._lines[client]
        return True

    def _favoured_client(self) -> str | None:
        """Returns the client that the favour rule chooses, if any."""
        known = [client for client in self._lines if client in self._usage]
        if not known:
            return None
        client = self._usage.least_used(known)
        mostly_new = 2 * len(known) < len(self._lines)
        return client if mostly_new or self._usage.is_light(client) else None

    def _next_of_round(self) -> str:
        """Returns the first client of the round, and moves it to the end."""
        client = next(iter(self._lines))
        self._lines[client] = self._lines.pop(client)
        return client
