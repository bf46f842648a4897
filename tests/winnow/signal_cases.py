"""Signals and the loop."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tenacious import LONG, turn, until

from winnow.signals import on_signals, run


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_interrupts_no_step_of_what_runs_and_is_raised_when_that_has_cleaned_up(
    number: signal.Signals,
) -> None:
    """A step may be in the middle of native code, which takes an exception for a fault."""
    seen, before = [], signal.getsignal(number)

    async def main() -> None:
        os.kill(os.getpid(), number)
        seen.append("step")
        try:
            await asyncio.Event().wait()
        finally:
            await turn()
            seen.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert seen == ["step", "cleaned up"]
    assert signal.getsignal(number) == before


def test_a_signal_that_comes_just_before_the_end_is_not_lost() -> None:
    async def main() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        run(main())


def test_a_signal_ends_a_loop_that_sleeps_though_another_thread_takes_it() -> None:
    main = threading.get_ident()

    def send() -> None:
        until(lambda: sys._current_frames()[main].f_code.co_name == "select", LONG)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    thread = threading.Thread(target=send)

    async def hang() -> None:
        thread.start()
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        run(hang())
    thread.join()


def test_without_a_signal_all_is_as_it_was() -> None:
    async def main() -> int:
        return 7

    opened = len(list(Path("/proc/self/fd").iterdir()))
    before = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    assert run(main()) == 7
    assert (signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)) == before
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_a_service_that_listens_to_signals_itself_keeps_them() -> None:
    told: list[int] = []

    async def main() -> None:
        done = asyncio.Event()
        on_signals(asyncio.get_running_loop(), done.set)
        os.kill(os.getpid(), signal.SIGTERM)
        await done.wait()
        told.append(1)

    run(main())
    os.kill(os.getpid(), signal.SIGTERM)  # until the process ends
    assert told == [1]


def test_a_signal_before_the_loop_runs_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    async def main() -> None:
        await turn()
        seen.append(1)

    def late(main: Coroutine[Any, Any, None]) -> None:
        signal.raise_signal(signal.SIGTERM)
        run_loop(main)

    run_loop = asyncio.run
    monkeypatch.setattr(asyncio, "run", late)
    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert not seen


def test_a_second_signal_does_not_wait_for_what_hangs() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[str] = []

    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:  # it may block the loop for as long as nobody interrupts it
            signal.raise_signal(signal.SIGINT)
            seen.append("went on")

    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert not seen
    assert signal.getsignal(signal.SIGINT) == before


def test_what_goes_wrong_at_the_end_is_told_rather_than_the_signal() -> None:
    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run(main())
