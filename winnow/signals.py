"""Handles SIGTERM and Ctrl-C.

In commands, both raise KeyboardInterrupt, so that the command cleans up. In services, both call a
function that starts the shutdown.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    import asyncio

Result = TypeVar("Result")
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_EXIT_INTERRUPTED = 130
_WAKEUP_BYTES = 512


def end_on_signals() -> None:
    """Makes SIGTERM and Ctrl-C raise KeyboardInterrupt in the main thread.

    SIGINT needs a handler, too, because a background process of a script inherits SIGINT as
    ignored.
    """
    for number in _END_SIGNALS:
        signal.signal(number, _interrupt)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Makes SIGTERM and Ctrl-C end the process immediately while the block imports native modules.

    KeyboardInterrupt would break such an import. Commands import their modules in this block when
    they run, so that their help does not need these modules.
    """
    previous = {number: signal.getsignal(number) for number in _END_SIGNALS}
    for number in _END_SIGNALS:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine in the main thread, as `asyncio.run` does.

    The first SIGTERM or Ctrl-C cancels `main`, and raises KeyboardInterrupt when `main` has cleaned
    up. It does not raise immediately, because an exception inside gRPC's code would crash gRPC. The
    second signal raises KeyboardInterrupt immediately.
    """
    import asyncio  # noqa: PLC0415 (every command imports this module)

    canceller = _SignalCanceller()
    with contextlib.ExitStack() as stack:
        canceller.install(stack)
        try:
            result = asyncio.run(canceller.run(main, stack))
        except asyncio.CancelledError:
            if not canceller.received:
                raise
    if canceller.received:
        raise KeyboardInterrupt
    return result


class _SignalCanceller:
    """Cancels a task on the first signal."""

    def __init__(self) -> None:
        self.received = 0
        """Number of received signals."""
        self._task: asyncio.Task[Any] | None = None

    def install(self, stack: contextlib.ExitStack) -> None:
        """Installs the handlers. Closing `stack` restores the previous handlers."""
        for number in _END_SIGNALS:
            stack.callback(self._restore, number, signal.getsignal(number))
            signal.signal(number, self._handle)

    async def run(self, main: Coroutine[Any, Any, Result], stack: contextlib.ExitStack) -> Result:
        """Awaits `main` in the current task, which the first signal cancels."""
        import asyncio  # noqa: PLC0415 (every command imports this module)

        self._task = asyncio.current_task()
        assert self._task is not None
        stack.callback(_wake_on_signals(self._task.get_loop()))
        if self.received:
            self._task.cancel()
        return await main

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.received += 1
        if self.received > 1:
            raise KeyboardInterrupt
        if self._task is not None:
            _call_soon(self._task.get_loop(), self._task.cancel)

    def _restore(self, number: int, handler: Any) -> None:
        if signal.getsignal(number) == self._handle:  # a service may have set its own handler
            signal.signal(number, handler)


def on_signals(loop: "asyncio.AbstractEventLoop", call: Callable[[], object]) -> None:
    """Calls `call` on the loop at every SIGTERM and Ctrl-C; does nothing after the loop is closed.

    Unlike those of `loop.add_signal_handler`, the handlers outlive the loop, so a late signal does
    not kill a process that is ending. Call this once per process.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        _call_soon(loop, call)

    _wake_on_signals(loop)
    for number in _END_SIGNALS:
        signal.signal(number, handle)


def _call_soon(loop: "asyncio.AbstractEventLoop", call: Callable[[], object]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def _wake_on_signals(loop: "asyncio.AbstractEventLoop") -> Callable[[], None]:
    """Makes every signal wake the loop; returns a function that undoes this.

    Python runs signal handlers only while the main thread executes bytecode. Without a wakeup, a
    signal that arrives in another thread, or just before the main thread sleeps, could wait for
    ever.
    """
    read_end, write_end = os.pipe()
    for end in (read_end, write_end):
        os.set_blocking(end, False)
    loop.add_reader(read_end, os.read, read_end, _WAKEUP_BYTES)
    previous = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)

    def release() -> None:
        signal.set_wakeup_fd(previous)
        os.close(read_end)
        os.close(write_end)

    return release


def restore_default_handlers() -> None:
    """Makes the next signal kill the process. For a command that is ending after an interrupt."""
    for number in _END_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def ignore_signals() -> None:
    """Ignores signals from now on, because the interpreter removes other handlers at exit."""
    for number in _END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def exit_immediately(code: int) -> NoReturn:
    """Ends the process after its output, without what the interpreter does when it ends."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None if it was closed before the start
            # a closed pipe, a full disk, or a closed stream
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    os._exit(code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _exit(_number: int, _frame: FrameType | None) -> None:
    os._exit(_EXIT_INTERRUPTED)
