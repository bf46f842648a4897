"""Waiting for something that happens in another process."""

import threading
import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Looks again and again until `condition` holds; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.05)
