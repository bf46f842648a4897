"""Loads the shards of a node in few threads.

The allocator of glibc gives threads that run at the same time separate heaps, up to eight for each
core. Loading leaves some megabytes of free memory in each. So a node that loaded a hundred shards
in a hundred threads would keep the memory of many heaps.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoadingThreads:
    """Runs functions in a limited number of daemon threads, which end once nothing waits."""

    def __init__(self, threads: int) -> None:
        """`threads` is the maximum number of threads at a time, at least 1."""
        self._threads, self._running = threads, 0
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()

    def run(self, work: Callable[[], Result]) -> Result:
        """Runs `work` in the next free thread; returns its result, or raises its error.

        Blocks: the caller is a thread with nothing else to do. If the system has no thread left,
        the caller runs what waits.
        """
        done: Future[Result] = Future()
        context = copy_context()  # for the context of log lines
        with self._lock:
            self._waiting.append((lambda: context.run(work), done))
            is_new = self._running < self._threads
            self._running += is_new
        if is_new:
            try:
                threading.Thread(target=self._run_waiting, name="loading", daemon=True).start()
            except RuntimeError:
                self._run_waiting()
        return done.result()

    def _run_waiting(self) -> None:
        while (found := self._next()) is not None:
            work, done = found
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 (raised by `run`)
                done.set_exception(error)
            del found, work, done  # while waiting for the lock, a result must not be kept

    def _next(self) -> tuple[Callable[[], Any], Future[Any]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None
