"""How many calls one caller has in hand, and who has too many.

Streams and health watches count, too: they may last for ever, and a client may open any number of
connections. A caller is a key, where callers are known by keys, else a client address. What needs
no key is counted apart, by address, or strangers could shut out keyed callers at their address.
"""

from collections import Counter
from functools import partial
from typing import Any

from winnow import caller
from winnow.errors import OverloadedError

_OURS = "/winnow."
_CHECK = "/grpc.health.v1.Health/Check"
"""Is never refused: probes decide by it whether a process is started again."""
_KEYLESS_SHARE = 10
"""Services without keys, such as health watches, may have one in so many calls of the limit."""
_Counted = tuple[str, str]
"""What is counted, as a caller is told, and of whom."""


class PerAddressLimit:
    """The calls in hand, by caller."""

    def __init__(self, most: int | None) -> None:
        """`most`: of one caller; None for no limit."""
        self._most = most
        self._in_hand: Counter[_Counted] = Counter()

    def enter(self, method: str, context: Any) -> OverloadedError | None:
        """Counts a call until it ends; or says why it is refused, and does not count it.

        The caller must be bound by now, if it is known by a key. `method` is such as
        `/winnow.v1.AnswerService/Answer`.
        """
        if self._most is None or method == _CHECK:
            return None
        counted, most = self._counted(method, context, self._most)
        if self._in_hand[counted] >= most:
            return OverloadedError(
                f"{most} {counted[0]} are in hand already; try again, or end some", 1.0
            )
        self._in_hand[counted] += 1
        context.add_done_callback(partial(self._leave, counted))
        return None

    def _counted(self, method: str, context: Any, most: int) -> tuple[_Counted, int]:
        """What a call counts as, and how many of that there may be."""
        address = str(context.peer()).rpartition(":")[0]
        if not method.startswith(_OURS):
            named = "health watches and calls of reflection of your address"
            return (named, address), max(most // _KEYLESS_SHARE, 1)
        known = caller.current()
        if known is not None:
            return ("calls with your key", known.name), most
        return ("calls of your address", address), most

    def _leave(self, counted: _Counted, _context: Any) -> None:
        self._in_hand[counted] -= 1
        if not self._in_hand[counted]:
            del self._in_hand[counted]
