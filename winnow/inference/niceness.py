"""Lowers the priority of threads. Works only on Linux."""

import os
import sys
import threading

_MOST_NICE = 19


def lower_priority(nice: int) -> None:
    """Adds `nice` to the niceness of the calling thread; does nothing except on Linux."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(now + nice, _MOST_NICE))
