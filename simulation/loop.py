"""An event loop of virtual time for many processes, whose order is drawn from a seed.

Within a process, callbacks run in the order that asyncio promises. Which process runs next is drawn
at random, as the kernel might choose. Time passes only while no process can run.

Work in threads runs on the loop, too: at a moment of its drawn duration, as a whole.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from random import Random
from typing import Any, TypeVar, TypeVarTuple

from simulation.blocking_work import BlockingWork
from simulation.process import Process, current_process

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")
_THREAD_SECONDS = 0.002
"""Mean duration of work in a thread, in seconds."""


class StoppedEarlyError(Exception):
    """The loop has nothing to do, but its main task has not ended."""


class SimulatedHandle:
    """A callback, and the process in which it runs. Takes the place of asyncio's slower handles."""

    __slots__ = ("_cancelled", "_when", "args", "callback", "context", "process")

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
        when: float,
    ) -> None:
        """`context` is the context of the callback; None for a copy of the current one.

        `when` is the time of a timer, in seconds.
        """
        self.callback, self.args = callback, args
        self.process = current_process(context)
        self.context = copy_context() if context is None else context
        self._when, self._cancelled = when, False

    def cancel(self) -> None:
        self._cancelled = True

    def cancelled(self) -> bool:
        return self._cancelled

    def when(self) -> float:
        return self._when


class OrderedTask(asyncio.Task[Any]):
    """A task whose hash is its number, so that sets of tasks have the same order in every run."""

    number = 0
    process: Process | None = None
    """The process in which it runs."""

    def __hash__(self) -> int:
        return self.number


class OrderedFuture(asyncio.Future[Any]):
    """A future whose hash is its number."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs callbacks of processes; its time begins at 0 seconds."""

    def __init__(self, rng: Random) -> None:
        self._rng, self._now = rng, 0.0
        self._timers: list[tuple[float, float, int, SimulatedHandle]] = []
        self._numbers = itertools.count()
        self._runnable: list[Process] = []
        """Processes with callbacks that can run now."""
        self._lanes: dict[object, float] = {}
        """When each executor with one thread is free again."""
        self._kept: list[object] = []
        """Callbacks of killed processes. If they were freed, their `finally` blocks would run."""
        self._blocking: list[BlockingWork] = []
        """Work in threads that has waited for the loop."""
        self._closed = False
        self.events = 0
        """Number of callbacks that have run."""
        self.errors: list[dict[str, Any]] = []
        """Contexts of unhandled exceptions."""

    def time(self) -> float:
        return self._now

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        """Runs until `main` has ended; returns its result."""
        asyncio.events._set_running_loop(self)  # noqa: SLF001 (as every loop does)
        try:
            task = self.create_task(main)
            while not task.done():
                self._step()
            return task.result()
        finally:
            asyncio.events._set_running_loop(None)  # noqa: SLF001

    def _step(self) -> None:
        """Runs one callback, or lets time pass."""
        runnable = self._runnable
        if not runnable:
            self._pass_time()
            return
        index = self._rng.randrange(len(runnable)) if len(runnable) > 1 else 0
        process = runnable[index]
        ready = process.ready
        if not ready or process.paused or not process.alive:
            del runnable[index]
            return
        handle = ready.popleft()
        if not ready:
            del runnable[index]
        if not handle.cancelled():
            self.events += 1
            self._run_callback(handle)

    def _run_callback(self, handle: SimulatedHandle) -> None:
        try:
            handle.context.run(handle.callback, *handle.args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 (as asyncio's handles do)
            message = f"exception in callback {handle.callback!r}"
            self.call_exception_handler({"message": message, "exception": error})

    def _pass_time(self) -> None:
        """Advances the time to the next timer, and makes its callback ready."""
        timers = self._timers
        while timers:
            when, _, _, handle = heapq.heappop(timers)
            if handle.cancelled():
                continue
            self._now = max(self._now, when)
            self._make_ready(handle)
            return
        raise StoppedEarlyError("no callback and no timer is left, so the main task never ends")

    def _make_ready(self, handle: SimulatedHandle) -> None:
        process = handle.process
        if not process.alive:
            self._kept.append(handle)
            return
        ready = process.ready
        ready.append(handle)
        if len(ready) == 1 and not process.paused:
            self._runnable.append(process)

    def kill(self, process: Process) -> None:
        """Ends a process at once."""
        process.alive = False
        self._kept += process.ready
        process.ready.clear()

    def pause(self, process: Process) -> None:
        process.paused = True

    def resume(self, process: Process) -> None:
        process.paused = False
        if process.ready and process.alive and process not in self._runnable:
            self._runnable.append(process)

    def call_soon(  # type: ignore[override] # a handle of another class
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> SimulatedHandle:
        handle = SimulatedHandle(callback, args, context, self._now)
        if not self._closed:
            self._make_ready(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override] # a handle of another class
        self,
        delay: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> SimulatedHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override] # a handle of another class
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> SimulatedHandle:
        handle = SimulatedHandle(callback, args, context, when)
        if not self._closed:
            # timers of one moment fire in a random order: real clocks are never equal
            entry = (when, self._rng.random(), next(self._numbers), handle)
            heapq.heappush(self._timers, entry)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        future = OrderedFuture(loop=self)
        future.number = next(self._numbers)
        return future

    def create_task(
        self,
        coro: Generator[Any, None, Result] | Coroutine[Any, Any, Result],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Result]:
        number = next(self._numbers)
        # also keeps asyncio from naming tasks by a count that goes on between simulations
        # the number comes first: asyncio puts each new task into a set
        task = OrderedTask.__new__(OrderedTask)
        task.number, task.process = number, current_process(context)
        task.__init__(coro, loop=self, name=name or f"task-{number}", context=context)  # type: ignore[misc]
        task._log_destroy_pending = False  # type: ignore[attr-defined] # noqa: SLF001
        return task

    def run_in_executor(
        self, executor: Any, func: Callable[[*Arguments], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """Runs `func` at a drawn moment, and delivers its result at a later one.

        Work of an executor is done in order, one piece at a time. Work without an executor
        overlaps.
        """
        future = self.create_future()
        begin = self._now if executor is None else max(self._now, self._lanes.get(executor, 0.0))
        process = current_process()
        run_at = begin + self.draw_duration(process)
        end = run_at + self.draw_duration(process)
        if executor is not None:
            self._lanes[executor] = end

        def work() -> None:
            try:
                result: Any = func(*args)
            except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
                self.call_at(max(end, self._now), deliver, error, None)
            else:
                if isinstance(result, BlockingWork):
                    self._blocking.append(result)
                    result.ended.add_done_callback(partial(finish, result))
                else:
                    self.call_at(max(end, self._now), deliver, None, result)

        def finish(blocking: BlockingWork, _: object) -> None:
            self.call_at(max(end, self._now), deliver, blocking.error, blocking.result)

        def deliver(error: BaseException | None, result: Any) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_at(run_at, work)
        return future

    def tasks_of(self, process: Process) -> list[str]:
        """Returns the names of the tasks of a process that have not ended."""
        return sorted(
            task.get_name()
            for task in asyncio.all_tasks(self)
            if isinstance(task, OrderedTask) and task.process is process
        )

    def draw_duration(self, process: Process) -> float:
        """Returns a random duration of work in a thread of a process, in seconds."""
        return self._rng.expovariate(1 / _THREAD_SECONDS) * process.slowness

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed:
            self.errors.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._closed

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Drops all callbacks. `finally` blocks of tasks then run, without any effect."""
        self._closed = True
        for work in self._blocking:
            work.abandon()
        self._timers.clear()
        self._runnable.clear()
        self._kept.clear()

    def run_in(self, process: Process, callback: Callable[..., Any], *args: Any) -> None:
        """Calls `callback` in a process soon; never if the process was killed."""
        self.call_soon(callback, *args, context=process.context())

    def start(self, process: Process, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Starts a task in a process."""
        return self.create_task(work, context=process.context())
