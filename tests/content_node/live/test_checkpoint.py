"""SQLite's write-ahead log stays small, for any content of the log and any end of its node."""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from live_writes import logged
from small_disks import mounted, take_all

from winnow.content_node.live import wal
from winnow.content_node.live.copying import check_live_log
from winnow.content_node.live.database import truncate_wal
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.reading import log_path, read_writes, wal_path
from winnow.errors import NotWritableError, OverloadedError, UnavailableError

ONE = logged(1, text="words " * 500)


def some(first: int, count: int) -> list[LoggedWrite]:
    return [_named(n, f"id-{n % 50}") for n in range(first, first + count)]


def _named(sequence: int, name: str) -> LoggedWrite:
    assert ONE.put is not None
    put = replace(ONE.put, passage=replace(ONE.put.passage, id=name))
    return replace(ONE, sequence=sequence, id=name, put=put)


def fed(shard: Path, writes: int) -> WriteLog:
    """A log of writes, ten of them in a transaction."""
    shard.mkdir(exist_ok=True)
    log = open_log(shard)
    for first in range(1, writes + 1, 10):
        log.append(some(first, 10))
        log.acknowledge()
    return log


def wal_bytes(log: WriteLog) -> int:
    return wal_path(log.path).stat().st_size


def test_a_trim_gives_back_the_room_of_the_write_ahead_log(tmp_path: Path) -> None:
    log = fed(tmp_path, 200)
    assert wal_bytes(log) > 1_000_000
    log.trim(200)
    assert wal_bytes(log) == 0
    log.append(some(201, 1))
    assert list(log.read_after(200)) == some(201, 1)
    log.close()


@pytest.mark.parametrize("written", [True, False])
def test_a_trim_makes_nothing_where_the_log_was_moved_away(tmp_path: Path, written: bool) -> None:
    log = fed(tmp_path / "shard", 200)
    if not written:
        shutil.copytree(tmp_path / "shard", tmp_path / "started")
        log.close()
        log = open_log(tmp_path / "started")
    aside = log.path.with_name("aside")
    log.path.rename(aside)
    before = wal_bytes(log)
    with pytest.raises(NotWritableError, match=log.path.name):
        log.trim(100)
    assert not log.path.exists()
    assert wal_bytes(log) == before
    log.close()
    aside.rename(log.path)
    assert len(list(read_writes(log.path, 0))) == 200


def test_a_trim_of_nothing_gives_it_back_too_as_at_a_start(tmp_path: Path) -> None:
    log = fed(tmp_path / "killed", 200)
    shutil.copytree(tmp_path / "killed", tmp_path / "started")
    log.close()
    again = open_log(tmp_path / "started")
    assert wal_bytes(again) > 1_000_000
    again.trim(0)
    assert wal_path(again.path).exists() is False  # the last connection removes it
    assert (again.last, again.trimmed) == (200, 0)
    again.append(some(201, 1))
    assert list(again.read_after(0)) == some(1, 201)
    again.close()


def test_a_trim_makes_no_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.trim(7)
    log.close()
    assert not log.path.parent.exists()


def test_a_reader_holds_up_neither_a_trim_nor_writes(tmp_path: Path) -> None:
    log = fed(tmp_path, 200)
    with contextlib.closing(sqlite3.connect(f"{log.path.as_uri()}?mode=ro", uri=True)) as reading:
        reading.execute("BEGIN")
        assert reading.execute("SELECT count(*) FROM writes").fetchone() == (200,)
        log.trim(200)
        assert truncate_wal(log.path) is False
        log.append(some(201, 1))
    log.trim(201)
    assert wal_bytes(log) == 0
    log.close()


def test_a_write_ahead_log_that_was_emptied_shrinks_without_a_trim(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(some(1, 2_000))  # beyond the size at which SQLite empties it
    large = wal_bytes(log)
    assert large > 16_000_000
    log.append(some(2_001, 1))
    assert wal_bytes(log) < large / 2
    log.close()


def test_a_write_ahead_log_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(some(1, 1_200))
    size = wal_bytes(log)
    assert size > 10_000_000
    tracemalloc.start()
    try:
        assert wal.unfinished_bytes(wal_path(log.path)) == 0
        assert tracemalloc.get_traced_memory()[1] < size / 10
    finally:
        tracemalloc.stop()
    log.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", megabytes=8) as place:
        yield place


def test_a_small_disk_takes_any_number_of_writes_that_are_trimmed(small_disk: Path) -> None:
    """Three shards share it, and none ever writes so much that SQLite empties its log by itself."""
    shards = [small_disk / str(shard) for shard in range(3)]
    logs = [fed(shard, 10) for shard in shards]
    for _ in range(10):
        for log in logs:
            for _ in range(10):
                log.append(some(log.last + 1, 5))
                log.acknowledge()
            log.trim(log.last)
    assert {log.last for log in logs} == {510}
    for log in logs:
        log.close()


def test_a_disk_that_write_ahead_logs_have_filled_has_room_after_a_start(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older version left it: nothing was ever moved into the database."""
    log = fed(small_disk, 10)
    with monkeypatch.context() as older:
        older.setattr(log, "_shrink_wal", lambda: None)
        while wal_bytes(log) < 3_000_000:
            log.append(some(log.last + 1, 10))
            log.acknowledge()
            log.trim(log.last)
    killed = {path.name: path.read_bytes() for path in log.path.parent.iterdir()}
    log.close()
    for name, data in killed.items():
        (log.path.parent / name).write_bytes(data)
    room = take_all(small_disk)
    started = open_log(small_disk)
    with pytest.raises(OverloadedError, match="make room on the disk"):
        started.append(some(started.last + 1, 100))
    os.truncate(room, room.stat().st_size - 400_000)
    started.trim(started.last)
    started.append(some(started.last + 1, 100))
    started.close()


def test_the_advice_for_a_full_disk_is_room_and_not_permissions(
    small_disk: Path, tmp_path: Path
) -> None:
    log = fed(tmp_path / "killed", 10)
    shutil.copytree(tmp_path / "killed", small_disk / "shard")
    log.close()
    log_path(small_disk / "shard").with_name("writes.sqlite-shm").unlink()
    take_all(small_disk)
    with pytest.raises(UnavailableError, match=f"make room on the disk of {small_disk}/shard/live"):
        check_live_log(small_disk / "shard", lambda _: lambda _: None)


def test_a_full_directory_of_temporary_files_is_named(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fed(tmp_path, 200)
    take_all(small_disk, but=200_000)
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with pytest.raises(UnavailableError, match=f"the disk of {small_disk}/.*TMPDIR"):
        check_live_log(tmp_path, lambda _: lambda _: None)
    assert len(list(read_writes(log.path, 0))) == 200
    log.close()
