"""Threads that give way to others.

Knows the priority of a thread, which only Linux has.
"""

import os
import sys
import threading

_MOST_NICE = 19


def give_way(nice: int) -> None:
    """Lowers the priority of the calling thread, where threads have one of their own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(now + nice, _MOST_NICE))
