"""Signals that come while an event loop has nothing else to do."""

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tenacious import until

from winnow.signals import on_signals

LONG = 20.0


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


def sleeps(thread: int) -> bool:
    stat = Path(f"/proc/self/task/{thread}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"


async def test_a_signal_that_does_not_interrupt_the_loop_is_heard_all_the_same() -> None:
    """The kernel may give it to another thread, or to this one just before it waits."""
    told = asyncio.Event()
    on_signals(asyncio.get_running_loop(), told.set)
    main = threading.get_native_id()

    def signalled() -> None:
        until(lambda: sleeps(main), LONG / 2)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    other = threading.Thread(target=signalled)
    began = time.monotonic()
    other.start()
    # when that is over the loop would look, and hear of the signal
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(told.wait(), LONG)
    assert time.monotonic() - began < LONG
    other.join()
