"""Child processes that end with their parent (Linux)."""

import contextlib
import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "WINNOW_PARENT"
"""Environment variable that a parent sets to its process id."""
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> bool:
    """Makes the kernel send SIGTERM to this process when its parent dies; call it first in a child.

    The kernel sends the signal when the thread that started the child ends. Does nothing if
    `PARENT_VARIABLE` is not set, or on systems other than Linux. Returns whether the variable is
    set: then the parent is a command, too.
    """
    # removed, so that children of this process do not inherit it
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is None:
        return False
    # a child is not in the foreground group: it would stop at its first output after `stty tostop`
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    if not sys.platform.startswith("linux"):
        return True
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if str(os.getppid()) != parent:  # the parent died before the call of prctl
        sys.exit(1)
    return True
