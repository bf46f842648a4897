"""The items of one request, shared among threads that take turns."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

from winnow.deadline import Deadline
from winnow.errors import StoppedError
from winnow.inference.fair_threads import tell
from winnow.inference.stop import Stop

Item = TypeVar("Item")
Result = TypeVar("Result")


class ReadJob(Generic[Item, Result]):
    """Works on items until a deadline, one in each turn. Made on the event loop."""

    def __init__(
        self,
        work: Callable[[Item, Stop], Result],
        items: Sequence[Item],
        deadline: Deadline,
        *,
        threads: int = 1,
        each: Callable[[], object] = lambda: None,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`threads` threads take turns; each calls `turn` until it returns False.

        `each` is called on the event loop after every item; `around` is entered for every item.
        """
        self._work, self._items, self._threads = work, items, threads
        self._each, self._around = each, around
        self.deadline = deadline
        self.started: float | None = None
        """When the first thread began, by `time.perf_counter`."""
        self._stop, self._lock = Stop(), threading.Lock()
        self._next, self._closed = 0, False
        self._results: dict[int, Result] = {}
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()

    def turn(self) -> bool:
        """Works on one item; returns whether to call again."""
        place = self._take()
        if place is not None and self._do(place):
            return True
        with self._lock:
            self._threads -= 1
            last = not self._threads
        if last:
            tell(self._loop, self._end, None)
        return False

    async def wait(self) -> None:
        """Waits until all items are done, or for the deadline; raises the error of an item."""
        ended, _ = await asyncio.wait([self._ended], timeout=max(self.deadline.left(), 0))
        for each in ended:
            each.result()

    def close(self) -> list[Result]:
        """Stops the work; returns the results so far, in the order of their items."""
        self._stop.set()
        with self._lock:
            self._closed = True
            return [self._results[place] for place in sorted(self._results)]

    def _take(self) -> int | None:
        with self._lock:
            self.started = self.started or time.perf_counter()
            if self._stop.is_set or self._next == len(self._items) or self.deadline.expired():
                return None
            self._next += 1
            return self._next - 1

    def _do(self, place: int) -> bool:
        """Works on an item; returns whether it was done."""
        try:
            with self._around():
                result = self._work(self._items[place], self._stop)
        except StoppedError:  # the request is over
            return False
        except BaseException as error:  # noqa: BLE001 (the request fails, not the thread)
            tell(self._loop, self._end, error)
            return False
        if self._keep(place, result):
            tell(self._loop, self._each)
        return True

    def _keep(self, place: int, result: Result) -> bool:
        """Keeps a result, unless the job was closed."""
        with self._lock:
            if not self._closed:
                self._results[place] = result
            return not self._closed

    def _end(self, error: BaseException | None) -> None:
        if self._ended.done():
            return
        if error is None or self._closed:  # the error is not needed any more
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)
