"""Removes what merges leave behind, and holds the lock that admits one merge of a shard at a time.

Open files stay readable. Leftovers do no harm but take room, so a failed step is tried again, also
without a merge: on a full disk writes are refused, and there would be no next merge.
"""

import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import structlog

from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.live.reading import LIVE
from winnow.content_node.merging.names import LOCK, generation_path, outlived, unfinished
from winnow.content_node.merging.policy import retry_after
from winnow.content_node.states.dropping import are_complete, drop_states
from winnow.deadline import Clock
from winnow.errors import ArtefactError, UnavailableError
from winnow.faultpoints import reach
from winnow.files.lock import locked

_log = structlog.get_logger("content_node")


def merge_lock(shard: Path) -> AbstractContextManager[None]:
    """Admits one merge of a shard at a time, also where a killed node left its merge running.

    Raises UnavailableError if another process merges the shard.
    """
    path = shard / LIVE / LOCK
    return locked(path, f"another process is merging this shard ({path} is locked): wait for it")


def names_in(shard: Path) -> list[str]:
    """The names of all that lies beside the log of a shard; raises ArtefactError if they cannot be
    read.
    """
    try:
        return [path.name for path in (shard / LIVE).iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ArtefactError(f"cannot read {shard / LIVE}: {error.strerror}") from error


def tidy(shard: Path, served: int) -> None:
    """Removes what nobody needs now that the generation of write `served` is served.

    The states of what was built go, too, once those of the generation are whole: nobody reads that
    base again, as the log does not reach back to it.

    Raises OSError if something cannot be removed.
    """
    _remove(shard, outlived(names_in(shard), served))
    generation = generation_path(shard, served)
    if generation.exists() and are_complete(generation):
        try:
            drop_states(shard)
        except OSError as error:  # the built shard may belong to another user
            _log.warning("removal of unused precomputed states failed", reason=str(error))
    reach("clean.done")


def remove_partial(shard: Path) -> None:
    """Removes what interrupted merges left; to be called by who holds the lock of merges. Raises
    OSError if something cannot be removed.
    """
    _remove(shard, unfinished(names_in(shard)))


def remove_unfinished(shard: Path) -> None:
    """Removes what an interrupted merge left, unless it goes on: its node may have been killed."""
    if not unfinished(names_in(shard)):
        return
    try:
        with merge_lock(shard):
            remove_partial(shard)
    except UnavailableError:
        return
    except OSError as error:
        _log.warning("removal of an interrupted merge's files failed", reason=str(error))


def _remove(shard: Path, names: list[str]) -> None:
    for name in names:
        shutil.rmtree(shard / LIVE / name)
        reach("clean.one")


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
            _log.warning("cleanup after a merge failed", reason=str(error))
            return False
        return True

    async def _forget(self, served: int) -> None:
        reach("trim.begun")
        await self._trim(served)
        reach("trim.done")

    async def _remove(self, served: int) -> None:
        await DaemonWork(partial(self._tidy, served)).result()
