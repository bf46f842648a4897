"""Signals and the loop."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest
from tenacious import until

from winnow.signals import on_signals

LONG = 20.0


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_wakes_a_loop_that_sleeps_though_another_thread_takes_it(
    number: signal.Signals,
) -> None:
    """Which the main thread, where handlers run, does not notice."""
    told, main = asyncio.Event(), threading.get_ident()
    on_signals(asyncio.get_running_loop(), told.set)

    def send() -> None:
        until(lambda: sys._current_frames()[main].f_code.co_name == "select", LONG)
        signal.pthread_kill(threading.get_ident(), number)

    threading.Thread(target=send).start()
    async with asyncio.timeout(LONG):
        await told.wait()


def test_a_signal_after_the_loop_has_ended_changes_nothing() -> None:
    async def ended() -> None:
        on_signals(asyncio.get_running_loop(), lambda: told.append(1))

    told: list[int] = []
    asyncio.run(ended())
    os.kill(os.getpid(), signal.SIGTERM)
    assert not told
