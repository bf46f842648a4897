"""Places in the program where tests end it as kill -9 does, to see what is left.

Nothing happens at them unless the variable below names one: tests and `bench/crashes` set it for
the processes that they start. An installation from a wheel ignores the variable.
"""

import os
import signal

from winnow.packaged import checkout

VARIABLE = "WINNOW_TEST_KILL_AT"
"""`POINT` or `POINT:N`: the process is killed where it comes to the point for the N-th time."""
POINTS = (
    "log.begun",
    "log.inserted",
    "log.committed",
    "log.acknowledged",
    "merge.begun",
    "merge.passages",
    "merge.words",
    "merge.graph",
    "merge.manifest",
    "merge.verified",
    "merge.renamed",
    "merge.synced",
    "swap.opened",
    "swap.swapped",
    "trim.begun",
    "trim.done",
    "clean.one",
    "clean.done",
    "repair.written",
    "repair.named",
)


class FaultPoints:
    """Counts down to the end of the process."""

    def __init__(self, wanted: str) -> None:
        """`wanted` is the value of the variable; empty for none."""
        self._point, _, times = wanted.partition(":")
        self._left = int(times or 1)

    def reach(self, point: str) -> None:
        """Kills the process if this is the wanted point."""
        if point != self._point:
            return
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


reach = FaultPoints(os.environ.get(VARIABLE, "") if checkout() else "").reach
