"""Runs the items of one request in several threads, which other requests use in turn."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

from winnow.deadline import Deadline
from winnow.errors import StoppedError
from winnow.inference.fair_threads import call_on_event_loop
from winnow.inference.stop_signal import StopSignal

Item = TypeVar("Item")
Result = TypeVar("Result")


class ReadJob(Generic[Item, Result]):
    """Processes items one by one until a deadline. Created on the event loop."""

    def __init__(
        self,
        work: Callable[[Item, StopSignal], Result],
        items: Sequence[Item],
        deadline: Deadline,
        *,
        threads: int = 1,
        on_item_done: Callable[[], object] | None = None,
        item_context: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Expects `threads` threads, which call `process_next` until it returns False.

        `on_item_done` is called on the event loop after every item. Every item is processed in an
        `item_context`.
        """
        self._work, self._items, self._running_threads = work, items, threads
        self._on_item_done, self._item_context = on_item_done, item_context
        self._deadline = deadline
        self.started_at: float | None = None
        """Time by `time.perf_counter` when the first thread began; None before."""
        self._stop, self._lock = StopSignal(), threading.Lock()
        self._next, self._closed = 0, False
        self._results: dict[int, Result] = {}
        self._loop = asyncio.get_running_loop()
        self._finished: asyncio.Future[None] = self._loop.create_future()

    def process_next(self) -> bool:
        """Processes one item; returns whether to call again."""
        index = self._take_item()
        if index is not None and self._process(index):
            return True
        with self._lock:
            self._running_threads -= 1
            is_last = not self._running_threads
        if is_last:
            call_on_event_loop(self._loop, self._finish, None)
        return False

    async def wait(self) -> None:
        """Waits until all items are done or the deadline passes; raises the error of an item."""
        await asyncio.wait([self._finished], timeout=max(self._deadline.left(), 0))
        if self._finished.done():
            self._finished.result()

    def close(self) -> list[Result]:
        """Stops the work; returns the results so far, in the order of their items."""
        self._stop.set()
        with self._lock:
            self._closed = True
            return [self._results[index] for index in sorted(self._results)]

    def _take_item(self) -> int | None:
        with self._lock:
            self.started_at = self.started_at or time.perf_counter()
            if self._stop.is_set or self._next == len(self._items) or self._deadline.expired():
                return None
            self._next += 1
            return self._next - 1

    def _process(self, index: int) -> bool:
        """Processes an item; returns False if the job has ended: by `close` or an error."""
        try:
            with self._item_context():
                result = self._work(self._items[index], self._stop)
        except StoppedError:  # the request is over
            return False
        except BaseException as error:  # noqa: BLE001 (the request fails, not the thread)
            call_on_event_loop(self._loop, self._finish, error)
            return False
        with self._lock:
            if self._closed:  # the result is late
                return True
            self._results[index] = result
        if self._on_item_done is not None:
            call_on_event_loop(self._loop, self._on_item_done)
        return True

    def _finish(self, error: BaseException | None) -> None:
        if self._finished.done():
            return
        if error is None or self._closed:  # nobody waits for the error
            self._finished.set_result(None)
        else:
            self._finished.set_exception(error)
