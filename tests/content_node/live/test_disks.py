"""A disk that is full, read-only or broken: callers are told, nothing is half there, and when it is
mended the log goes on.
"""

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from doubtful_commits import doubt
from live_writes import logged
from small_disks import limited_files, mounted

from winnow.content_node.live.failures import write_failure
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.reading import log_path
from winnow.errors import ArtefactError, NotWritableError, OverloadedError

LONG = "words " * 500


def held(shard: Path) -> list[int]:
    """The writes that a log holds, all of them whole."""
    found: list[LoggedWrite] = []
    open_log(shard, lambda _: found.append, feeding=False).close()
    assert all(replace(w, removed_words=None) == logged(w.sequence, text=LONG) for w in found)
    return [write.sequence for write in found]


def fill(log: WriteLog) -> OverloadedError:
    """Appends until there is no room."""
    for _ in range(3_000):
        try:
            log.append([logged(log.last + n, text=LONG) for n in (1, 2, 3)])
            log.acknowledge()
        except OverloadedError as error:
            return error
    raise AssertionError("it never was full")


def check_that_it_goes_on(shard: Path, log: WriteLog) -> None:
    """Nothing is lost, and there is room again."""
    last = log.last
    assert last
    log.append([logged(last + 1, text=LONG)])
    log.acknowledge()
    log.close()
    assert held(shard) == list(range(1, last + 2))


def test_a_database_that_may_not_grow(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append([logged(1, text=LONG)])
    log.acknowledge()
    assert log._connection is not None
    log._connection.execute("PRAGMA max_page_count = 60").close()
    error = fill(log)
    assert "no room" in str(error)
    assert error.retry_after > 0
    check_that_it_goes_on(tmp_path, log)  # its next connection has no such limit


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", megabytes=1) as place:
        yield place


def test_a_full_disk_on_which_room_is_made(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400_000))
    log = open_log(small_disk)
    error = fill(log)
    assert "no room" in str(error) or "cannot be written to" in str(error)
    assert list(log.read_after(0))[-1].sequence == log.last  # who reads is not disturbed
    with pytest.raises(OverloadedError):
        log.append([logged(log.last + n, text=LONG) for n in range(1, 200)])
    ballast.unlink()
    check_that_it_goes_on(small_disk, log)


def test_a_disk_that_is_full_before_the_first_write(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(2_000_000))
    log = open_log(small_disk)
    with pytest.raises(OverloadedError):
        log.append([logged(1, text=LONG)])
    assert log.last == 0
    open_log(small_disk / "nothing").close()
    ballast.unlink()
    log.append([logged(1, text=LONG)])
    check_that_it_goes_on(small_disk, log)


def test_a_log_that_was_not_closed_on_a_full_disk_is_not_called_damaged(
    small_disk: Path, tmp_path: Path
) -> None:
    (tmp_path / "killed").mkdir()
    killed = open_log(tmp_path / "killed")
    killed.append([logged(1, text=LONG)])
    killed.acknowledge()
    shutil.copytree(tmp_path / "killed", small_disk / "shard")
    (small_disk / "shard" / "live" / "writes.sqlite-shm").unlink()  # as after a loss of power
    killed.close()
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(2_000_000))
    with pytest.raises(ArtefactError, match="make room on the disk and start again"):
        open_log(small_disk / "shard")
    ballast.unlink()
    check_that_it_goes_on(small_disk / "shard", open_log(small_disk / "shard"))


def test_a_trim_that_finds_no_room_is_done_later(small_disk: Path) -> None:
    log = open_log(small_disk)
    log.append([logged(n, text=LONG, removed_words=b"\xff\x70\0\0") for n in range(1, 30)])
    log.acknowledge()
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(2_000_000))
    with pytest.raises(OverloadedError):
        log.trim(20)
    assert log.trimmed == 0
    ballast.unlink()
    log.trim(20)
    log.append([logged(30, text=LONG)])
    log.close()
    assert held(small_disk) == list(range(21, 31))


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """As under a quota: the system refuses single writes."""
    log = open_log(tmp_path)
    log.append([logged(1, text=LONG)])
    log.acknowledge()
    with limited_files(400_000):
        fill(log)
    check_that_it_goes_on(tmp_path, log)


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """As a user who owns nothing."""
    if os.geteuid():
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shard() -> Iterator[Path]:
    """A directory that every user can get to."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)
        Path(directory).chmod(0o755)


def test_a_directory_that_may_not_be_written_to(shard: Path) -> None:
    shard.chmod(0o555)
    log = open_log(shard)
    with nobody(), pytest.raises(NotWritableError, match="may write to"):
        log.append([logged(1, text=LONG)])
    assert not list(shard.iterdir())
    shard.chmod(0o755)
    log.append([logged(1, text=LONG)])
    check_that_it_goes_on(shard, log)


def test_a_log_that_was_not_closed_is_read_where_nothing_may_be_written(shard: Path) -> None:
    log = open_log(shard)
    log.append([logged(1, text=LONG)])
    log.acknowledge()
    copy = shard / "copy"
    shutil.copytree(shard / "live", copy / "live")
    log.close()
    for path in (copy / "live" / "writes.sqlite-shm", copy / "live" / "writes.sqlite-wal"):
        assert path.exists()
    (copy / "live" / "writes.sqlite-shm").unlink()
    (copy / "live").chmod(0o555)
    before = sorted(path.name for path in (copy / "live").iterdir())
    with nobody():
        assert held(copy) == [1]
        log = open_log(copy)
        with pytest.raises(NotWritableError):
            log.append([logged(2, text=LONG)])
        log.close()
    assert sorted(path.name for path in (copy / "live").iterdir()) == before
    (copy / "live").chmod(0o755)


def test_writes_that_cannot_be_acknowledged_are_stored_nevertheless(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append([logged(1, text=LONG)])
    log.acknowledge()
    assert log._acknowledged is not None
    broken = os.open("/dev/full", os.O_WRONLY)
    kept = os.dup(log._acknowledged._descriptor)
    os.dup2(broken, log._acknowledged._descriptor)
    log.append([logged(2, text=LONG)])
    with pytest.raises(OverloadedError, match=r"no room for .*acknowledged"):
        log.acknowledge()
    os.dup2(kept, log._acknowledged._descriptor)
    os.close(broken)
    os.close(kept)
    check_that_it_goes_on(tmp_path, log)


def test_unacknowledged_writes_are_rolled_back_by_the_next_ones(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append([logged(1, text=LONG)])
    log.acknowledge()
    for lost in (2, 3):
        doubt(log)
        with pytest.raises(OverloadedError, match="disk I/O error"):
            log.append([logged(n, "lost", text=LONG) for n in range(2, lost + 1)])
        assert log.last == 1
        log._open_for_writing()
    check_that_it_goes_on(tmp_path, log)


def test_an_unacknowledged_trim_is_continued(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append([logged(n, text=LONG, removed_words=b"\7\0\0\0") for n in range(1, 10)])
    log.acknowledge()
    doubt(log)
    with pytest.raises(OverloadedError, match="disk I/O error"):
        log.trim(4)
    log.trim(6)
    assert log.trimmed == 6
    assert log.trimmed_words.passages == 0
    log.close()
    assert held(tmp_path) == [7, 8, 9]


def test_a_database_that_is_locked_by_a_stranger(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append([logged(1, text=LONG)])
    log.acknowledge()
    assert log._connection is not None
    log._connection.execute("PRAGMA busy_timeout = 0").close()
    with contextlib.closing(sqlite3.connect(log_path(tmp_path))) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(OverloadedError, match="locked by another process"):
            log.append([logged(2, text=LONG)])
    check_that_it_goes_on(tmp_path, log)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.EROFS, "read-only"), NotWritableError),
        (OSError(errno.EACCES, "denied"), NotWritableError),
        (OSError(errno.ENOSPC, "full"), OverloadedError),
        (OSError(errno.EIO, "broken"), OverloadedError),
        (sqlite3.OperationalError("unknown"), OverloadedError),
    ],
)
def test_every_failure_is_one_that_callers_know(
    error: OSError | sqlite3.Error, kind: type[Exception]
) -> None:
    found = write_failure(error, Path("writes.sqlite"))
    assert type(found) is kind
    assert "writes.sqlite" in str(found)
