"""How many calls one client address has in hand, and who has too many.

Streams and health watches count, too: they may last for ever, and a client may open any number of
connections. Knows nothing of what calls are for.
"""

from collections import Counter
from functools import partial
from typing import Any

from winnow.errors import OverloadedError


class Crowd:
    """The calls in hand, by the address of the client."""

    def __init__(self, most: int | None) -> None:
        """`most`: of one address; None for no limit."""
        self._most = most
        self._in_hand: Counter[str] = Counter()

    def enter(self, context: Any) -> OverloadedError | None:
        """Counts a call until it ends; or says why it is refused, and does not count it."""
        if self._most is None:
            return None
        address = str(context.peer()).rpartition(":")[0]
        if self._in_hand[address] >= self._most:
            return OverloadedError(
                f"{self._most} calls of your address are in hand already; try again, or end some",
                1.0,
            )
        self._in_hand[address] += 1
        context.add_done_callback(partial(self._leave, address))
        return None

    def _leave(self, address: str, _context: Any) -> None:
        self._in_hand[address] -= 1
        if not self._in_hand[address]:
            del self._in_hand[address]
