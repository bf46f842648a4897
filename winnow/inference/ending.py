"""The end of a process that hangs in a library's code.

No Python of ours runs while such code keeps the interpreter: neither a timer nor a handler of
signals, so that SIGTERM would not end the process either.
"""

import faulthandler
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_one = threading.Lock()
_STDERR = 2
"""The file itself: `sys.stderr` may have been replaced by something without one."""


@contextmanager
def ends_process_after(seconds: float) -> Iterator[None]:
    """Ends the process with exit code 1 unless what is done within ends first; where each thread
    stood is written to the standard error. There is one such end in a process, so other threads
    wait for their turn.
    """
    with _one:
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
