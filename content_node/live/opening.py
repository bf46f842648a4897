"""Opening the log of a shard: locks it, checks it, and passes on its writes."""

from pathlib import Path

import structlog

from winnow.content_node.live import acknowledged, wal
from winnow.content_node.live.acknowledged import ACKNOWLEDGED, Acknowledged
from winnow.content_node.live.entry import Logged
from winnow.content_node.live.locks import LOCK, DirectoryLock
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

    Takes some seconds for 100 000 writes: not for the event loop. A missing log is made by the
    first write.

    Args:
        shard: the directory of the shard.
        begin: called with the last trimmed write if there is a log; the function that it returns
            gets each write in order.
        feeding: whether this process may append, which keeps every other node off. Without it
            others may read, too.
        log_id: the name of a log that is made for a journal.

    Raises:
        ArtefactError: the log is damaged, its end is missing, or another node holds it.

    """
    path = log_path(shard)
    lock = _lock(path.with_name(LOCK), feeding)
    try:
        return WriteLog(path, lock, _checked(path, begin), log_id)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def expect_base(
    base: ShardManifest, shard: Path, log_id: str, trimmed_up_to: int, last: int
) -> None:
    """Raises ArtefactError if this log does not continue a base. A missing log has no name and no
    writes.
    """
    path = log_path(shard)
    if base.log_id not in ("", log_id):
        raise ArtefactError(
            f"{path} is log {log_id or '(none)'}, and the shard's base follows log "
            f"{base.log_id}: {AGAIN}"
        )
    if not trimmed_up_to <= base.sequence <= last:
        raise ArtefactError(
            f"{path} holds writes {trimmed_up_to + 1} to {last}, but the shard's base ends "
            f"at write {base.sequence}: {AGAIN}"
        )


def _lock(path: Path, feeding: bool) -> DirectoryLock | None:
    if not path.exists():
        return None
    try:
        return DirectoryLock(path, shared=not feeding)
    except OSError as error:
        raise ArtefactError(f"cannot lock {path}: {error.strerror}") from error


def _checked(path: Path, begin: Begin) -> tuple[State, Trimmed] | None:
    told = acknowledged.read(path.with_name(ACKNOWLEDGED))
    if not path.exists():
        expect_nothing(path, told)
        return None
    tail = _unfinished(wal_path(path))
    state, trimmed = check(path, told, begin)
    if tail:
        _log.warning(
            "unfinished end of a log dropped; none of it was acknowledged",
            path=str(wal_path(path)),
            bytes=tail,
            last=state.last,
        )
    if told is None and state.last:
        _log.warning(
            "log accepted without its acknowledgement file, which is missing",
            missing=str(path.with_name(ACKNOWLEDGED)),
            last=state.last,
        )
    return state, trimmed


def expect_nothing(path: Path, told: Acknowledged | None) -> None:
    """Raises ArtefactError if other files show that there was a log."""
    others = (told is not None and told.sequence) or wal_path(path).exists()
    if others and not path.exists():  # or the first write has made it just now
        raise ArtefactError(f"{path} is missing, and other files of the log are there: {AGAIN}")


def _unfinished(path: Path) -> int:
    try:
        return wal.unfinished(path)
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}") from error
