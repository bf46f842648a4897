"""The clock of this node, by which fronts say how long the node may store their writes.

`winnow.stateless.cluster.node_clock` has the rules.
"""

import time

from winnow.deadline import Deadline

_MILLISECONDS = 1_000


def now_ms() -> int:
    """Returns the time of the node in milliseconds. The clock never jumps."""
    return int(time.monotonic() * _MILLISECONDS)


def deadline_at(milliseconds: int) -> Deadline:
    """Returns the deadline at a time of the node."""
    return Deadline(milliseconds / _MILLISECONDS)
