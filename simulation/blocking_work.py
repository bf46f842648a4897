"""Work in threads that waits for calls on the event loop, such as copying a shard.

Other work of threads runs on the loop as a whole. This work runs in a real thread, in turns with
the loop: while one of them runs, the other one waits. So it is repeatable, too.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextvars import copy_context
from functools import partial, wraps
from typing import Any

_real_run = asyncio.run_coroutine_threadsafe
_local = threading.local()


class AbandonedError(BaseException):
    """Ends the thread of a process that was killed, at the end of the simulation."""


class BlockingWork:
    """A function that runs in turns with the event loop."""

    def __init__(self, work: Callable[[], Any]) -> None:
        """Begins to run it, until it waits for the first time."""
        self._context, self._work = copy_context(), work
        self._may_run, self._has_paused = threading.Semaphore(0), threading.Semaphore(0)
        self._is_abandoned = self._waits = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.result: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.go_on()

    def go_on(self) -> None:
        """Runs it until it waits or ends. Called by the loop."""
        self._may_run.release()
        self._has_paused.acquire()
        if not self._waits and not self.ended.done():
            self.ended.set_result(None)

    def pause(self) -> None:
        """Lets the loop run until `go_on` is called. Called by the work."""
        self._waits = True
        self._has_paused.release()
        self._may_run.acquire()
        self._waits = False
        if self._is_abandoned:
            raise AbandonedError

    def abandon(self) -> None:
        """Ends the thread if it still waits."""
        if self._thread.is_alive():
            self._is_abandoned = True
            self._may_run.release()
            self._thread.join()

    def _run(self) -> None:
        _local.work = self
        self._may_run.acquire()
        try:
            self.result = self._context.run(self._work)
        except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
            self.error = error
        self._has_paused.release()


class _LoopResult:
    """The result of a coroutine on the loop, for which work waits."""

    def __init__(self, work: BlockingWork, task: "asyncio.Task[Any]") -> None:
        self._work, self._task = work, task

    def result(self, timeout: float | None = None) -> Any:
        if not self._task.done():
            self._task.add_done_callback(lambda _: self._work.go_on())
            self._work.pause()
        try:
            return self._task.result()
        except asyncio.CancelledError:
            raise CancelledError from None  # as a future of threads does


def blocking(work: Callable[..., Any]) -> Callable[..., BlockingWork]:
    """Returns a function that begins the work; `SimulatedLoop.run_in_executor` awaits its end."""

    @wraps(work)
    def begin(*arguments: Any) -> BlockingWork:
        return BlockingWork(partial(work, *arguments))

    return begin


def _run_coroutine(coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
    work = getattr(_local, "work", None)
    if work is None:
        return _real_run(coroutine, loop)
    return _LoopResult(work, loop.create_task(coroutine))


def install() -> None:
    """Replaces what threads call to wait for the loop."""
    asyncio.run_coroutine_threadsafe = _run_coroutine  # type: ignore[assignment]
