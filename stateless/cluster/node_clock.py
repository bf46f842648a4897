"""The clock of a content node, compared with the clock of this front by polls.

A failed write must not be stored after its failure was reported: it could undo a newer write. But a
network can hold sent bytes back, and deliver them long after the front gave up. gRPC does not
prevent that, since a server counts the deadline of a call from its arrival. So each write carries a
time of the node's own clock, after which the node refuses it.

The time is never too late. A node reads its clock before its reply arrives here. So when this
front's clock has advanced by s seconds since the arrival, the node's clock shows at least the time
of the reply plus s. It is too early by at most the duration of the reply's journey, which is
milliseconds. No clock needs to be set. Clocks that run at different speeds hardly matter, because
nodes are polled twice a second while calls are made.
"""

import time

from winnow.deadline import Clock, Deadline

_MILLISECONDS = 1_000


class NodeClock:
    """How far the clock of a node is ahead of the clock of this front."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        """`clock` is the clock of deadlines, in seconds."""
        self._clock = clock
        self._ahead: float | None = None
        """Seconds; None before the first reply, and for a node of an older version."""

    def record(self, clock_ms: int) -> None:
        """Records the node's clock in milliseconds, from a reply that has just arrived; 0 if the
        node is of an older version.
        """
        self._ahead = clock_ms / _MILLISECONDS - self._clock() if clock_ms else None

    def milliseconds_at(self, deadline: Deadline) -> int | None:
        """Returns a time of the node's clock that is not after `deadline`; None if unknown."""
        if self._ahead is None:
            return None
        return max(int((deadline.at + self._ahead) * _MILLISECONDS), 0)
