"""Decides which client has the next turn, if several wait for the same workers.

Knows a key and the waiting entries of each client; does not know what an entry is. Two rules take
turns:

- Round robin (Nagle, "On packet switches with infinite storage", 1987): of n waiting clients each
  has at least every 2n-th turn, however many entries any of them has waiting. A client that comes,
  or comes again, has its turn after all that wait already.
- Favour: the known client that had fewest turns lately (`usage`) is next, if that is clearly less
  than others had, or if most waiting clients are new names; else the round goes on. So a client
  that asks for a little now and then is ahead of one that is always there, and names that are used
  once take every other turn at most. A new name is known once it had a turn. It then counts as if
  it had as many turns as any other.

Entries of one client come first in, first out.
"""

from collections import deque
from typing import Generic, TypeVar

from winnow.policy.usage import Usage

Entry = TypeVar("Entry")


class FairQueue(Generic[Entry]):
    """Entries that wait, by client. The usage of a client without entries is kept for a while."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[Entry]] = {}
        """Entries by client, in the order of the round."""
        self._usage = Usage()
        self._favours = False
        """Whether the next turn may be out of the round."""

    def __len__(self) -> int:
        """Number of entries that wait."""
        return sum(map(len, self._lines.values()))

    def add(self, client: str, entry: Entry) -> None:
        """Puts an entry at the end of its client's line."""
        self._lines.setdefault(client, deque()).append(entry)

    def put_back(self, client: str, entry: Entry) -> None:
        """Puts an entry that had its turn, and needs another one, at the head of its line."""
        self._lines.setdefault(client, deque()).appendleft(entry)

    def take(self) -> tuple[str, Entry] | None:
        """Takes out the first entry of the client whose turn it is; None if none waits.

        The time is proportional to the number of waiting clients.
        """
        if not self._lines:
            return None
        favourite = self._favourite() if self._favours else None
        client = self._next() if favourite is None else favourite
        self._favours = not self._favours
        self._usage.add(client)
        entry = self._lines[client].popleft()
        if not self._lines[client]:
            del self._lines[client]
        return client, entry

    def remove(self, client: str, entry: Entry) -> bool:
        """Takes an entry out; False if it does not wait."""
        line = self._lines.get(client)
        if line is None or entry not in line:
            return False
        line.remove(entry)
        if not line:
            del self._lines[client]
        return True

    def _favourite(self) -> str | None:
        """The client that is served out of the round, where it keeps its place; None for none."""
        known = [client for client in self._lines if client in self._usage]
        if not known:
            return None
        least = self._usage.least(known)
        return least if self._usage.modest(least) or 2 * len(known) < len(self._lines) else None

    def _next(self) -> str:
        """The first client of the round, which becomes the last."""
        client = next(iter(self._lines))
        self._lines[client] = self._lines.pop(client)
        return client
