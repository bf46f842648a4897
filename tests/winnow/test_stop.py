"""Ending runs from another thread: those that go on, those that begin later, no others."""

import threading

import pytest

from winnow.inference.stop_signal import StopSignal


def test_setting_ends_every_run_that_goes_on() -> None:
    stop, ended = StopSignal(), list[str]()
    with stop.on_stop(lambda: ended.append("one")), stop.on_stop(lambda: ended.append("other")):
        assert not stop.is_set
        stop.set()
    assert stop.is_set
    assert ended == ["one", "other"]


def test_a_run_that_begins_too_late_ends_at_once() -> None:
    stop, ended = StopSignal(), list[str]()
    stop.set()
    with stop.on_stop(lambda: ended.append("late")):
        assert ended == ["late"]


def test_a_run_that_is_over_is_left_alone_even_if_it_failed() -> None:
    stop, ended = StopSignal(), list[str]()
    with pytest.raises(ZeroDivisionError), stop.on_stop(lambda: ended.append("over")):
        raise ZeroDivisionError
    stop.set()
    assert not ended


def test_the_same_run_in_two_threads_is_ended_in_both() -> None:
    stop, both = StopSignal(), threading.Barrier(3, timeout=60)
    ended = threading.Semaphore(0)

    def run() -> None:
        with stop.on_stop(ended.release):
            both.wait()
            both.wait()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    both.wait()
    stop.set()
    both.wait()
    for thread in threads:
        thread.join()
    assert ended.acquire(blocking=False)
    assert ended.acquire(blocking=False)
