"""Opening the log of a shard: locked, checked, and told write by write."""

from pathlib import Path

import structlog

from winnow.content_node.live import acknowledged, wal
from winnow.content_node.live.acknowledged import ACKNOWLEDGED, Acknowledged
from winnow.content_node.live.entry import Logged
from winnow.content_node.live.lock import LOCK, DirectoryLock
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.reading import AGAIN, Begin, check, log_path, wal_path
from winnow.content_node.live.schema import State, Trimmed
from winnow.content_node.shard.manifest import ShardManifest
from winnow.errors import ArtefactError

_log = structlog.get_logger("content_node")


def _passed_over(_: Logged) -> None:
    pass


def open_log(
    shard: Path, begin: Begin = lambda _: _passed_over, *, feeding: bool = True, log_id: str = ""
) -> WriteLog:
    """Opens the log in a shard's directory, and checks all of it.

    Takes some seconds for 100 000 writes: not on an event loop. If there is a log, `begin` is
    called with the last write that was trimmed, and what it returns with each write in order. If
    there is none, nothing is made before the first write. `feeding` keeps every other node off;
    without it others may read, too, and nobody is to append. `log_id` names a log that is made,
    where it follows another one.

    Raises:
        ArtefactError: it is damaged, its end is missing, or another node holds it.

    """
    path = log_path(shard)
    lock = _lock(path.with_name(LOCK), feeding)
    try:
        return WriteLog(path, lock, _checked(path, begin), log_id)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def expect_base(base: ShardManifest, shard: Path, log_id: str, trimmed: int, last: int) -> None:
    """Raises ArtefactError if a base is not one that this log goes on from; a log that is not there
    has no name and no writes.
    """
    path = log_path(shard)
    if base.log_id not in ("", log_id):
        raise ArtefactError(
            f"{path} is log {log_id or '(none)'}, and the shard's base follows log "
            f"{base.log_id}: {AGAIN}"
        )
    if not trimmed <= base.sequence <= last:
        raise ArtefactError(
            f"{path} holds writes {trimmed + 1} to {last}, and the shard's base those up "
            f"to {base.sequence}: {AGAIN}"
        )


def _lock(path: Path, feeding: bool) -> DirectoryLock | None:
    """The lock, if there is anything to be locked yet."""
    if not path.exists():
        return None
    try:
        return DirectoryLock(path, shared=not feeding)
    except OSError as error:
        raise ArtefactError(f"cannot lock {path}: {error.strerror}") from error


def _checked(path: Path, begin: Begin) -> tuple[State, Trimmed] | None:
    """Where the log stands; None if there is none."""
    told = acknowledged.read(path.with_name(ACKNOWLEDGED))
    if not path.exists():
        expect_nothing(path, told)
        return None
    tail = _unfinished(wal_path(path))
    state, trimmed = check(path, told, begin)
    if tail:
        _log.warning(
            "the end of a log was never finished, and nobody was told of it: it is dropped",
            path=str(wal_path(path)),
            bytes=tail,
            last=state.last,
        )
    if told is None and state.last:
        _log.warning(
            "nothing says how far the log was acknowledged: it is taken as it is",
            missing=str(path.with_name(ACKNOWLEDGED)),
            last=state.last,
        )
    return state, trimmed


def expect_nothing(path: Path, told: Acknowledged | None) -> None:
    """Raises ArtefactError if there must have been a log."""
    others = (told is not None and told.sequence) or wal_path(path).exists()
    if others and not path.exists():  # or the first write has made it just now
        raise ArtefactError(f"{path} is missing, and other files of the log are there: {AGAIN}")


def _unfinished(path: Path) -> int:
    try:
        return wal.unfinished(path)
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}") from error
