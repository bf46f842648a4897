"""Giving back to the system what is free in the heap of the C library.

glibc gives back the end of its heap only. After thousands of calls have ended, what was freed lies
between what is still used: a front kept 100 MB of 5,000 health watches until it had more to do.
"""

import ctypes
from collections.abc import Callable


def trimming() -> Callable[[], object] | None:
    """What gives back every free page; None where the C library is not glibc.

    It takes milliseconds, without the interpreter's lock; for 100 MB 50.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return lambda: trim(0)
