"""What is removed once a generation is served: writes that it holds, and what merges left behind.

What stays does no harm but takes room. So a step that failed is tried again, also without a
merge: on a full disk writes are refused, and there would be no next one.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from winnow.content_node.loading import Loading
from winnow.content_node.merging.policy import retry_after
from winnow.deadline import Clock
from winnow.faultpoints import reach

_log = structlog.get_logger("content_node")


class Cleanup:
    """Trims the log and tidies the directory of one shard."""

    def __init__(
        self,
        trim: Callable[[int], Awaitable[None]],
        tidy: Callable[[int], None],
        clock: Clock = time.monotonic,
    ) -> None:
        """`trim` forgets the writes up to one; `tidy` removes what nobody needs once that write's
        generation is served. Both are told the last write that is in the base that is served.
        """
        self._trim, self._tidy, self._clock = trim, tidy, clock
        self._failures = 0
        self._again_at = 0.0

    @property
    def due(self) -> bool:
        """Whether something failed and is to be tried again now."""
        return self._failures > 0 and self._clock() >= self._again_at

    async def run(self, served: int) -> None:
        """Forgets what the base that is served holds, too; a failure is logged."""
        # each for itself: a trim that finds no room may find some where an old generation was
        done = [await self._tried(step, served) for step in (self._forget, self._remove)]
        self._failures = 0 if all(done) else self._failures + 1
        if self._failures:
            self._again_at = self._clock() + retry_after(self._failures)

    async def _tried(self, step: Callable[[int], Awaitable[None]], served: int) -> bool:
        try:
            await step(served)
        except Exception as error:  # noqa: BLE001 (a full disk, a file that cannot be removed)
            _log.warning("what was merged could not be cleaned up", reason=str(error))
            return False
        return True

    async def _forget(self, served: int) -> None:
        reach("trim.begun")
        await self._trim(served)
        reach("trim.done")

    async def _remove(self, served: int) -> None:
        await Loading(partial(self._tidy, served)).result()
