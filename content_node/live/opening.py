"""Opens the log of a shard: locks it, checks it, and replays its writes."""

from pathlib import Path

import structlog

from winnow.content_node.live.acknowledged import (
    ACKNOWLEDGED_FILE,
    AcknowledgedWrite,
    read_acknowledged,
)
from winnow.content_node.live.locks import LOCK_FILE, DirectoryLock
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.reading import COPY_AGAIN, StartReplay, check_log, log_path, wal_path
from winnow.content_node.live.schema import State, TrimmedWrites
from winnow.content_node.live.wal import unfinished_bytes
from winnow.content_node.shard.manifest import ShardManifest
from winnow.errors import ArtefactError

_log = structlog.get_logger("content_node")


def _ignore_write(_: LoggedWrite) -> None:
    pass


def open_log(
    shard: Path,
    start_replay: StartReplay = lambda _: _ignore_write,
    *,
    feeding: bool = True,
    log_id: str = "",
) -> WriteLog:
    """Opens the log in a shard's directory, and checks the whole log.

    Blocks for some seconds per 100 000 writes. The first write creates a missing log.

    Args:
        shard: the directory of the shard.
        start_replay: see `StartReplay`; not called if there is no log.
        feeding: whether this process may append. If so, it locks the log exclusively. Otherwise
            it shares the lock with other readers.
        log_id: the id for a new log that follows a journal.

    Raises:
        ArtefactError: the log is damaged, its end is missing, or another node holds its lock.

    """
    path = log_path(shard)
    lock = _lock_log(path.with_name(LOCK_FILE), feeding)
    try:
        return WriteLog(path, lock, _check_log(path, start_replay), log_id)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def check_log_continues_base(
    base: ShardManifest, shard: Path, log_id: str, trimmed_up_to: int, last: int
) -> None:
    """Raises ArtefactError if the log of `shard` does not continue a base.

    If the log is missing, `log_id` is empty and both numbers are 0.
    """
    path = log_path(shard)
    if base.log_id not in ("", log_id):
        raise ArtefactError(
            f"{path} has log id {log_id or '(none)'}, but the shard's base follows log "
            f"{base.log_id}: {COPY_AGAIN}"
        )
    if not trimmed_up_to <= base.sequence <= last:
        raise ArtefactError(
            f"{path} holds writes {trimmed_up_to + 1} to {last}, but the shard's base ends "
            f"at write {base.sequence}: {COPY_AGAIN}"
        )


def _lock_log(path: Path, feeding: bool) -> DirectoryLock | None:
    if not path.exists():
        return None
    try:
        return DirectoryLock(path, shared=not feeding)
    except OSError as error:
        raise ArtefactError(f"cannot lock {path}: {error.strerror}") from error


def _check_log(path: Path, start_replay: StartReplay) -> tuple[State, TrimmedWrites] | None:
    """Checks and replays a log; returns its position, or None if there is no log."""
    acknowledged = read_acknowledged(path.with_name(ACKNOWLEDGED_FILE))
    if not path.exists():
        check_no_log_files(path, acknowledged)
        return None
    try:
        dropped_bytes = unfinished_bytes(wal_path(path))
    except OSError as error:
        raise ArtefactError(f"cannot read {wal_path(path)}: {error.strerror}") from error
    state, trimmed = check_log(path, acknowledged, start_replay)
    if dropped_bytes:
        _log.warning(
            "unfinished end of a log dropped; none of it was acknowledged",
            path=str(wal_path(path)),
            bytes=dropped_bytes,
            last=state.last,
        )
    if acknowledged is None and state.last:
        _log.warning(
            "log accepted without its acknowledgement file",
            missing=str(path.with_name(ACKNOWLEDGED_FILE)),
            last=state.last,
        )
    return state, trimmed


def check_no_log_files(path: Path, acknowledged: AcknowledgedWrite | None) -> None:
    """Raises ArtefactError if the log `path` is missing although other files show that it existed.

    These files are the record of an acknowledged write, and SQLite's write-ahead log.
    """
    existed = (acknowledged is not None and acknowledged.sequence) or wal_path(path).exists()
    if existed and not path.exists():  # the first write may have created it just now
        raise ArtefactError(f"{path} is missing, but other files of the log exist: {COPY_AGAIN}")
