"""Child processes that end with their parent (Linux)."""

import contextlib
import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "WINNOW_PARENT"
"""Environment variable that a parent sets to its process id."""
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Makes the kernel send SIGTERM when the parent dies; call it first in a child.

    The signal is sent when the thread that started the child ends. Does nothing without the
    variable, or on other systems than Linux.
    """
    # removed, so that children of this process do not inherit it
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is None or not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if str(os.getppid()) != parent:  # it died before the call of prctl
        sys.exit(1)
