"""Lets calls into a shard that may be archived. All calls that wait share one restore.

Knows neither the files nor the calls of the shard. Used on the event loop.
"""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import structlog

from winnow.content_node.archiving.policy import RESTORE_PAUSE
from winnow.deadline import Clock, Deadline
from winnow.errors import (
    ArchiveUnreachableError,
    RestoreFailedError,
    RestoringError,
    UnavailableError,
    WinnowError,
)

_log = structlog.get_logger("content_node")
Opened = TypeVar("Opened")
RESTORING = "the shard is being restored from its archive: try again"
_ENDED = "the node is leaving, or closes the shard"


class ShardGate(Generic[Opened]):
    """The gate of one shard. It counts the calls inside, and knows when the last one ended."""

    def __init__(self, restore: Callable[[], Coroutine[Any, Any, Opened]], clock: Clock) -> None:
        """Begins closed. `restore` returns the opened shard; it runs once at a time.

        It runs in the present context: log lines of the shard must not name the request that
        happens to restore it.
        """
        self._restore, self._clock = restore, clock
        self._context = contextvars.copy_context()
        self._opened: Opened | None = None
        self._calls = 0
        self._last_call = clock()
        self._restoring: asyncio.Task[Opened] | None = None
        self._failed: tuple[float, Exception] | None = None
        """Time and error of the last restore, if it failed."""
        self._has_ended = False
        """Whether nothing is restored any more."""

    @property
    def opened(self) -> Opened | None:
        """The shard, if the gate is open."""
        return self._opened

    @property
    def last_call(self) -> float:
        """When the last call ended, on the clock; now while calls are inside or waiting."""
        return self._clock() if self._calls else self._last_call

    def touch(self) -> Opened:
        """Returns the shard to a call that does not wait. Begins to restore a closed shard.

        Raises RestoringError if it is closed, and RestoreFailedError if a restore has just failed.
        """
        self._last_call = self._clock()
        if self._opened is None:
            self.begin_restore()
            raise RestoringError(RESTORING).with_public(RESTORING)
        return self._opened

    def record_use(self) -> None:
        """Records that the shard is used without a call: it stores an entry of its journal."""
        self._last_call = self._clock()

    def open(self, shard: Opened) -> None:
        """Opens the gate."""
        self._opened, self._failed = shard, None
        self._last_call = self._clock()

    def try_close(self, since: float) -> bool:
        """Closes the gate, unless a call was inside after the time `since`; returns whether."""
        if self._calls or self._last_call > since:
            return False
        self._opened = None
        return True

    @asynccontextmanager
    async def enter(self, deadline: Deadline) -> AsyncIterator[Opened]:
        """Yields the opened shard to a call. If the gate is closed, restores the shard first.

        Raises RestoringError if that takes until the deadline. The restore goes on, and is not
        ended by callers that leave. Raises RestoreFailedError if the restore failed, or takes until
        the deadline after another one failed. If the archive cannot be reached, this is an
        ArchiveUnreachableError.
        """
        self._calls += 1
        try:
            yield self._opened if self._opened is not None else await self._wait(deadline)
        finally:
            self._calls -= 1
            self._last_call = self._clock()

    def begin_restore(self, pause: float = RESTORE_PAUSE) -> "asyncio.Task[Opened] | None":
        """Begins to restore a closed shard, unless that is running; returns None if it is open.

        Raises RestoreFailedError if a restore has failed in the last `pause` seconds, and
        UnavailableError after `close`.
        """
        if self._opened is not None:
            return None
        if self._has_ended:
            raise UnavailableError(_ENDED)
        if self._restoring is None:
            if self._failed is not None and self._clock() < self._failed[0] + pause:
                raise _unavailable(self._failed[1])
            restoring = self._restore_and_open()
            self._restoring = asyncio.create_task(restoring, context=self._context.copy())
            self._restoring.add_done_callback(self._restored)
        return self._restoring

    async def close(self) -> None:
        """Ends a running restore: calls that wait for it fail, and later ones restore nothing."""
        self._has_ended = True
        if self._restoring is not None:
            self._restoring.cancel()
            await asyncio.gather(self._restoring, return_exceptions=True)

    async def _wait(self, deadline: Deadline) -> Opened:
        restoring = self.begin_restore()
        assert restoring is not None  # only called while the gate is closed
        # no cancellation of a caller reaches the task
        seconds = max(deadline.before_reply().left(), 0.0)
        await asyncio.wait([restoring], timeout=seconds)
        if not restoring.done():
            if self._failed is not None:  # a store that hangs fails only after minutes
                raise _unavailable(self._failed[1])
            raise RestoringError(RESTORING).with_public(RESTORING)
        if restoring.cancelled():
            raise UnavailableError(_ENDED)
        if (error := restoring.exception()) is not None:
            raise _unavailable(error)
        return restoring.result()

    async def _restore_and_open(self) -> Opened:
        shard = await self._restore()
        self.open(shard)  # in the same step: no call sees a restored shard behind a closed gate
        return shard

    def _restored(self, done: "asyncio.Task[Opened]") -> None:
        self._restoring = None
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, Exception):
            self._failed = self._clock(), error
            if not isinstance(error, WinnowError):
                _log.error("restoring a shard failed unexpectedly", exc_info=error)


def _unavailable(error: BaseException) -> RestoreFailedError:
    """Returns the error of calls to a shard whose restore failed; callers may try again."""
    known = isinstance(error, WinnowError)
    message = f"the shard cannot be restored: {error if known else repr(error)}"
    if isinstance(error, ArchiveUnreachableError):
        public = "the archive of the shard cannot be reached now: try again"
        return ArchiveUnreachableError(message).with_public(public)
    public = "the shard cannot be restored from its archive now: try again"
    return RestoreFailedError(message).with_public(public)
