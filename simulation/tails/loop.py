"""The event loop of a simulation in which work takes processor time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from random import Random
from typing import Any, TypeVar, TypeVarTuple

from simulation.loop import SimulatedHandle, SimulatedLoop
from simulation.process import OUTSIDE, Process, current_process
from simulation.tails.interpreter import Interpreter, Turn

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class TimedLoop(SimulatedLoop):
    """Runs the work of threads when it begins, and delivers its results when its time has passed.

    Every process has an interpreter.
    """

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self.handover = 0.0
        """Seconds in which a waiting thread or event loop wakes, while no core works for it."""
        self.interpreters: dict[Process, Interpreter] = {}
        self._turn: Turn | None = None
        """What the running thread does; None while no work of a thread runs."""

    def charge(self, *, python: float = 0.0, native: float = 0.0) -> None:
        """Adds processor time to the work of the running thread, in seconds."""
        assert self._turn is not None
        self._turn.python += python
        self._turn.native += native

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Runs work of a thread, and returns its processor time and its messages."""
        assert self._turn is None
        self._turn = Turn()
        try:
            yield self._turn
        finally:
            self._turn = None

    def run_in_thread(
        self,
        process: Process,
        turn: Turn,
        weight: float,
        then: Callable[[], None],
        *,
        wakes: bool = True,
    ) -> None:
        """Lets the time of a turn pass, sends its messages, and then calls `then`.

        `wakes`: whether the thread was waiting for work.
        """
        interpreter = self.interpreters[process]

        def end() -> None:
            for message in turn.messages:
                self.call_later(self.handover, message, context=process.context())
            process.context().run(then)

        if wakes and (turn.python or turn.native):
            begin = interpreter.work_in_thread
            self.call_later(self.handover, begin, turn, weight, end, context=OUTSIDE.context())
        else:
            interpreter.work_in_thread(turn, weight, end)

    def call_soon_threadsafe(  # type: ignore[override] # a handle of another class
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> SimulatedHandle:
        """Calls `callback` soon. A thread's message arrives when its work has ended."""
        if self._turn is None:
            return self.call_soon(callback, *args, context=context)
        self._turn.messages.append(partial(callback, *args))
        return SimulatedHandle(callback, args, context, self.time())

    def run_in_executor(
        self, executor: Any, func: Callable[[*Arguments], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """Runs `func` in a thread. Executors of one thread are not kept in order."""
        future = self.create_future()
        with self.turn() as turn:
            try:
                deliver = partial(_set_result, future, func(*args))
            except Exception as error:  # noqa: BLE001 (raised where it is awaited)
                deliver = partial(_set_error, future, error)
        turn.messages.append(deliver)
        self.run_in_thread(current_process(), turn, 1.0, _do_nothing)
        return future


def _set_result(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _set_error(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _do_nothing() -> None:
    return None
