"""Shards are loaded in few threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from winnow.content_node.loading_threads import LoadingThreads


def test_not_more_than_the_limit_run_at_once_and_errors_are_raised() -> None:
    loading, lock, both = LoadingThreads(2), threading.Lock(), threading.Barrier(2)
    running, most = 0, 0

    def load(number: int) -> int:
        nonlocal running, most
        with lock:
            running, most = running + 1, max(most, running + 1)
        if number < 2:
            both.wait(60)  # the first two run at the same time
        with lock:
            running -= 1
        return number

    def fail() -> None:
        raise OSError("no file")

    with ThreadPoolExecutor(12) as callers:
        results = callers.map(lambda number: loading.run(lambda: load(number)), range(12))
        assert list(results) == list(range(12))
    assert most == 2
    with pytest.raises(OSError, match="no file"):
        loading.run(fail)
    assert loading.run(lambda: load(7)) == 7


def test_a_thread_that_cannot_be_started_delays_no_later_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The caller then does the waiting work itself."""
    loading = LoadingThreads(1)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with ThreadPoolExecutor(2) as callers:
        callers.submit(int).result(60)  # its thread runs already
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            assert loading.run(threading.current_thread) is threading.current_thread()
        assert callers.submit(loading.run, lambda: 7).result(60) == 7
