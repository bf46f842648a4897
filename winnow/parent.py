"""Child processes that end with their parent (Linux)."""

import contextlib
import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "WINNOW_PARENT"
"""The parent sets it to its process id."""
_SET_DEATH_SIGNAL = 1


def die_with_parent() -> None:
    """Asks the kernel for SIGTERM when the parent dies; call it first in a child.

    That is when the thread ends that started the child. Does nothing for processes that were
    started without the variable, and on other systems than Linux.
    """
    # children of this process have another parent
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is None or not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
    if str(os.getppid()) != parent:  # it died before we asked
        sys.exit(1)
