"""Limits the number of running calls of each caller.

Streams and health watches count, too, because they may last for ever and a client may open any
number of connections. A caller is identified by its key, or without one by its address. Calls
without a key are counted separately. Otherwise they could use up the limit of callers with keys at
the same address.
"""

from collections import Counter
from functools import partial
from typing import Any

from winnow import caller
from winnow.errors import OverloadedError

_OURS = "/winnow."
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
"""Method that is never rejected, because probes that restart processes call it."""
_KEYLESS_SHARE = 10
"""Divisor of the limit for services without keys, such as health watches."""
_CallGroup = tuple[str, str]
"""The kind of calls, for error messages, and the caller."""


class PerAddressLimit:
    """Counts the running calls of each caller."""

    def __init__(self, max_calls: int | None) -> None:
        """`max_calls`: maximum number of running calls of one caller; None for no limit."""
        self._max_calls = max_calls
        self._running: Counter[_CallGroup] = Counter()

    def enter(self, method: str, context: Any) -> OverloadedError | None:
        """Counts a call until it ends, or returns the error that rejects it.

        A caller with a key must already be bound. `method` is a path such as
        `/winnow.v1.AnswerService/Answer`.
        """
        if self._max_calls is None or method == _HEALTH_CHECK:
            return None
        group, max_calls = self._group(method, context, self._max_calls)
        if self._running[group] >= max_calls:
            return OverloadedError(
                f"{max_calls} {group[0]} are running, which is the limit: end some or try again",
                1.0,
            )
        self._running[group] += 1
        context.add_done_callback(partial(self._release, group))
        return None

    def _group(self, method: str, context: Any, max_calls: int) -> tuple[_CallGroup, int]:
        """Returns the group in which a call counts, and the limit of the group."""
        address = str(context.peer()).rpartition(":")[0]
        if not method.startswith(_OURS):
            kind = "health watches and reflection calls of your address"
            return (kind, address), max(max_calls // _KEYLESS_SHARE, 1)
        known = caller.current()
        if known is not None:
            kind = "calls with keys of your tenant" if known.tenant else "calls with your key"
            return (kind, known.client), max_calls
        return ("calls of your address", address), max_calls

    def _release(self, group: _CallGroup, _context: Any) -> None:
        self._running[group] -= 1
        if not self._running[group]:
            del self._running[group]
