"""The limit of calls that one caller may have in hand.

Streams and health watches count, too: they may last for ever, and a client may open any number of
connections. A caller is a key, where callers are known by keys, else a client address. Calls
without a key are counted separately by address, or strangers could shut out the keyed callers of
their address.
"""

from collections import Counter
from functools import partial
from typing import Any

from winnow import caller
from winnow.errors import OverloadedError

_OURS = "/winnow."
_CHECK = "/grpc.health.v1.Health/Check"
"""Is never rejected: by it, probes decide whether to restart a process."""
_KEYLESS_SHARE = 10
"""Services without keys, such as health watches, may have a tenth of the limit."""
_Counted = tuple[str, str]
"""The kind of calls, as errors name it, and the caller."""


class PerAddressLimit:
    """Counts the calls in hand by caller."""

    def __init__(self, most: int | None) -> None:
        """`most`: calls of one caller; None for no limit."""
        self._most = most
        self._in_hand: Counter[_Counted] = Counter()

    def enter(self, method: str, context: Any) -> OverloadedError | None:
        """Counts a call until it ends, or returns the error that rejects it.

        A caller that is known by a key must be bound already. `method` is like
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
        """What a call counts as, and the limit for it."""
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
