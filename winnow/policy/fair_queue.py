"""Whose turn is next, where several clients wait for the same workers.

Knows a key and the waiting entries of each client; does not know what an entry is. Clients that
wait take turns (round robin: Nagle, "On packet switches with infinite storage", 1987), however many
entries each has waiting; entries of one client come first in, first out. Whoever comes, or comes
again, has its turn after all that wait already, so nobody gains by leaving or by a new name.
"""

from collections import deque
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class FairQueue(Generic[Entry]):
    """Entries that wait, by client. A client with none is forgotten."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[Entry]] = {}
        """In the order of their turns."""

    def __len__(self) -> int:
        """Entries that wait."""
        return sum(map(len, self._lines.values()))

    def add(self, client: str, entry: Entry) -> None:
        """Puts an entry at the end of its client's line."""
        self._lines.setdefault(client, deque()).append(entry)

    def put_back(self, client: str, entry: Entry) -> None:
        """Puts an entry that had its turn, and needs another one, at the head of its line."""
        self._lines.setdefault(client, deque()).appendleft(entry)

    def take(self) -> tuple[str, Entry] | None:
        """The client whose turn it is and its first entry, which leaves; None if nobody waits."""
        if not self._lines:
            return None
        client = next(iter(self._lines))
        line = self._lines.pop(client)
        entry = line.popleft()
        if line:
            self._lines[client] = line
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
