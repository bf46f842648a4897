"""Removes files that merges leave behind, and locks a shard for one merge at a time.

Open files stay readable. Leftovers are harmless but take disk space, so a failed removal is retried
even without a merge: on a full disk writes are refused, so no merge would follow.
"""

import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import structlog

from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.merging.names import (
    LIVE,
    MERGE_LOCK,
    generation_path,
    obsolete_names,
    partial_names,
)
from winnow.content_node.merging.policy import retry_after
from winnow.content_node.shard.built_files import remove_built_passages
from winnow.content_node.states.removing import are_complete, drop_states
from winnow.deadline import Clock
from winnow.errors import ArtefactError, UnavailableError
from winnow.faultpoints import reach
from winnow.files.lock import locked
from winnow.reading.states_kind import KINDS

_log = structlog.get_logger("content_node")


def merge_lock(shard: Path) -> AbstractContextManager[None]:
    """Locks a shard for one merge at a time; the merge of a killed node may still hold the lock.

    Raises UnavailableError if another process merges the shard.
    """
    path = shard / LIVE / MERGE_LOCK
    return locked(path, f"another process is merging this shard ({path} is locked): wait for it")


def list_names(shard: Path) -> list[str]:
    """Lists the names in the `live` directory of a shard; none if the shard has no writes.

    Raises ArtefactError if the directory cannot be read.
    """
    try:
        return [path.name for path in (shard / LIVE).iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ArtefactError(f"cannot read {shard / LIVE}: {error.strerror}") from error


def remove_obsolete(shard: Path, served: int) -> None:
    """Removes older and damaged generations, once the generation of write `served` is served.

    Once the served generation has all data of a kind, that of the built shard is removed, too. The
    built shard is never served again, because the log was trimmed. In an index with tenants all
    passages of the built shard are removed, since some may be of deleted tenants.

    Raises OSError if a file cannot be removed, and UnavailableError as `remove_built_passages`.
    """
    _remove_files_of(shard, obsolete_names(list_names(shard), served))
    generation = generation_path(shard, served)
    if generation.exists():
        remove_built_passages(shard)
    for kind in KINDS:
        if generation.exists() and are_complete(generation, kind):
            try:
                drop_states(shard, kind)
            except OSError as error:  # the built shard may belong to another user
                _log.warning(f"removal of unused {kind.noun} failed", reason=str(error))
    reach("clean.done")


def remove_partial(shard: Path) -> None:
    """Removes incomplete generations; the caller holds the merge lock.

    Raises OSError if a file cannot be removed.
    """
    _remove_files_of(shard, partial_names(list_names(shard)))


def remove_abandoned_merge(shard: Path) -> None:
    """Removes incomplete generations, unless the merge of a killed node is still running."""
    if not partial_names(list_names(shard)):
        return
    try:
        with merge_lock(shard):
            remove_partial(shard)
    except UnavailableError:
        return
    except OSError as error:
        _log.warning("removal of an interrupted merge's files failed", reason=str(error))


def _remove_files_of(shard: Path, names: list[str]) -> None:
    for name in names:
        shutil.rmtree(shard / LIVE / name)
        reach("clean.one")


_HELD_SECONDS = 60.0
"""Seconds after which writes that the log kept for another node are tried to be removed again."""


class Cleanup:
    """Trims the log of a shard and removes its older generations, and retries after a failure.

    It is also repeated while the log keeps writes for another node. They may be of a deleted
    tenant, and there may be no further merge.
    """

    def __init__(
        self,
        trim: Callable[[int], Awaitable[bool | None]],
        remove_obsolete: Callable[[int], None],
        clock: Clock = time.monotonic,
    ) -> None:
        """Takes two functions that get the number of the last write in the served base.

        `trim` removes the writes up to this number from the log, and returns False if the log keeps
        some of them for a while. `remove_obsolete` removes the
        generations that are older than the served base.
        """
        self._trim, self._remove_obsolete, self._clock = trim, remove_obsolete, clock
        self._failures, self._is_held = 0, False
        self._retry_at = 0.0

    @property
    def due(self) -> bool:
        """Whether the last run failed or was incomplete, and has to be repeated now."""
        return (self._failures > 0 or self._is_held) and self._clock() >= self._retry_at

    async def run(self, last_served_write: int) -> None:
        """Removes data that the served base made obsolete; a failure is logged.

        `last_served_write` is the number of the last write in the served base.
        """
        # both steps in any case: a failed trim may succeed later, after removals have made room
        succeeded = [
            await self._try_step(step, last_served_write)
            for step in (self._trim_log, self._remove_files)
        ]
        self._failures = 0 if all(succeeded) else self._failures + 1
        if self._failures:
            self._retry_at = self._clock() + retry_after(self._failures)
        elif self._is_held:
            self._retry_at = self._clock() + _HELD_SECONDS

    async def _try_step(self, step: Callable[[int], Awaitable[None]], served: int) -> bool:
        """Runs a step; returns whether it succeeded."""
        try:
            await step(served)
        except Exception as error:  # noqa: BLE001 (a full disk, a file that cannot be removed)
            _log.warning("cleanup after a merge failed", reason=str(error))
            return False
        return True

    async def _trim_log(self, served: int) -> None:
        reach("trim.begun")
        self._is_held = await self._trim(served) is False
        reach("trim.done")

    async def _remove_files(self, served: int) -> None:
        await DaemonWork(partial(self._remove_obsolete, served)).result()
