"""Fault points: named points in the code at which tests kill the process, as with kill -9.

Tests and `bench/crashes` select a point by an environment variable of a child process.
Installations from a wheel ignore the variable.
"""

import os
import signal

from winnow.packaged import checkout

VARIABLE = "WINNOW_TEST_KILL_AT"
"""Environment variable with `POINT` or `POINT:N`, which kills the process when it reaches POINT for
the N-th time.
"""
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
    "custody.recorded",
    "archive.uploaded",
    "archive.verified",
    "archive.stubbed",
    "archive.removing",
    "archive.removed",
    "unarchive.unlisted",
    "unarchive.removing",
    "unarchive.removed",
    "restore.pulled",
    "restore.moving",
    "restore.moved",
    "restore.renamed",
    "copy.created",
    "copy.begun",
    "copy.positioned",
    "copy.stored",
    "copy.filled",
    "copy.followed",
    "copy.held",
    "copy.closed",
    "copy.complete",
    "copy.replaced",
)


class FaultPoints:
    """Kills the process at a selected fault point."""

    def __init__(self, setting: str) -> None:
        """`setting`: value of the environment variable; empty selects no point."""
        self._point, _, times = setting.partition(":")
        self._remaining = int(times or 1)

    def reach(self, point: str) -> None:
        """Kills the process if `point` is selected and this is the N-th time that it is reached."""
        if point != self._point:
            return
        self._remaining -= 1
        if not self._remaining:
            os.kill(os.getpid(), signal.SIGKILL)


reach = FaultPoints(os.environ.get(VARIABLE, "") if checkout() else "").reach
