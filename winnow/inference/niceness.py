"""Lowers the priority of threads, which works only on Linux."""

import os
import sys
import threading

_MOST_NICE = 19


def lower_priority(nice: int) -> None:
    """Lowers the priority of the calling thread by `nice`."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(now + nice, _MOST_NICE))
