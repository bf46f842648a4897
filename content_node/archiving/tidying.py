"""Removes what a shard does not need any more from its folder of the archive.

That is an earlier version of an archived shard, and the copy of a restored shard whose files were
merged since. Either may have the text of tenants that were deleted.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog

from winnow.content_node.archiving.files import remove_earlier, remove_obsolete_copy
from winnow.content_node.archiving.stub import ArchiveStub
from winnow.content_node.daemon_work import DaemonWork
from winnow.deadline import Clock

_log = structlog.get_logger("content_node")
Needed = ArchiveStub | int
"""The stub of an archived shard, or the number of the last write in the files of an open one."""


class ArchiveTidying:
    """Tidies the folder of one shard after each change, and again after a failure."""

    def __init__(
        self,
        directory: Path,
        url: str,
        *,
        check: Callable[[], None],
        retry_pause: float,
        clock: Clock,
    ) -> None:
        """Removes nothing yet.

        Args:
            directory: the shard.
            url: the archive of the node.
            check: raises an error once the work is to end.
            retry_pause: seconds after a failure until the next attempt.
            clock: returns the time in seconds.

        """
        self._directory, self._url, self._check = directory, url, check
        self._retry_pause, self._clock = retry_pause, clock
        self._done = ""
        """The state of the shard for which the archive has nothing else; empty if unknown."""
        self._failed_at: float | None = None

    def forget(self) -> None:
        """Records that the archive may get a new version."""
        self._done = ""

    def is_due(self, needed: Needed) -> bool:
        """Whether the archive may have more than `needed`, and the last failure is long ago."""
        failed_at = self._failed_at
        has_paused = failed_at is None or self._clock() >= failed_at + self._retry_pause
        return has_paused and not self.is_done(needed)

    def is_done(self, needed: Needed) -> bool:
        """Whether the archive has no more than `needed`."""
        return _state_of(needed) == self._done

    async def tidy(self, needed: Needed) -> None:
        """Removes from the archive what the shard does not need; logs a failure."""
        if isinstance(needed, ArchiveStub):
            remove = partial(remove_earlier, self._directory, self._url, needed, self._check)
        else:
            remove = partial(remove_obsolete_copy, self._directory, self._url, needed, self._check)
        try:
            await DaemonWork(remove).result()
        except Exception as error:  # noqa: BLE001 (it is tried again)
            self._failed_at = self._clock()
            _log.warning(
                "earlier version not removed from the archive",
                directory=str(self._directory),
                reason=str(error) or repr(error),
            )
        else:
            self._done, self._failed_at = _state_of(needed), None


def _state_of(needed: Needed) -> str:
    return needed.snapshot if isinstance(needed, ArchiveStub) else f"merged {needed}"
