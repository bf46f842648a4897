"""Child processes that never outlive their parent, however that ends (Linux)."""

import contextlib
import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "WINNOW_PARENT"
"""Who starts a child sets it to its own process id."""
_SET_DEATH_SIGNAL = 1


def die_with_parent() -> None:
    """Called first thing in a child: asks the kernel for SIGTERM when the parent dies.

    That is when the thread ends that started the child. Does nothing for processes that were
    started without the variable, and elsewhere than on Linux.
    """
    # its own children have another parent
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is None or not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
    if str(os.getppid()) != parent:  # it died before we asked
        sys.exit(1)
