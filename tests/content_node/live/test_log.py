"""The durable log of a shard: what was appended is there when it is opened again."""

import sqlite3
from pathlib import Path

import pytest
from live_writes import logged
from structlog.testing import capture_logs

import winnow.content_node.live.log as log_module
from winnow.content_node.live.acknowledged import ACKNOWLEDGED_FILE
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.reading import log_path, read_state, read_writes, wal_path
from winnow.content_node.live.schema import State
from winnow.errors import ArtefactError, NotWritableError, WinnowError


def written(shard: Path) -> list[LoggedWrite]:
    """What a log holds, read by itself."""
    found: list[LoggedWrite] = []
    open_log(shard, lambda _: found.append, feeding=False).close()
    return found


def write(shard: Path, *batches: list[LoggedWrite]) -> WriteLog:
    log = open_log(shard)
    for batch in batches:
        log.append(batch)
        log.acknowledge()
    return log


def some(first: int, last: int) -> list[LoggedWrite]:
    return [
        logged(n, text=f"words {n}", removed_words=b"" if n % 3 else None)
        for n in range(first, last)
    ]


def test_a_shard_without_writes_stays_as_it_is(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.acknowledge()
    log.trim(7)
    assert (log.last, log.log_id, list(log.read_after(0))) == (0, "", [])
    log.close()
    assert not list(tmp_path.iterdir())


def test_a_reopened_log_has_its_writes_in_order(tmp_path: Path) -> None:
    writes = [*some(1, 5), logged(5, "id-2", None, version=2**63 - 1), logged(6, "ü\0", "né 🎻")]
    log = write(tmp_path, writes[:3], writes[3:])
    assert list(log.read_after(0)) == writes
    assert list(log.read_after(2, 4)) == writes[2:4]
    name = log.log_id
    log.close()
    assert written(tmp_path) == writes
    again = open_log(tmp_path)
    assert (again.last, again.log_id) == (6, name)
    again.append([logged(7)])
    again.close()
    assert written(tmp_path) == [*writes, logged(7)]


def test_another_log_has_another_name_unless_it_is_given_one(tmp_path: Path) -> None:
    names = set()
    for shard, name in (("a", ""), ("b", ""), ("c", "given")):
        (tmp_path / shard).mkdir()
        log = open_log(tmp_path / shard, log_id=name)
        log.append([logged(1)])
        names.add(log.log_id)
        log.close()
    assert len(names) == 3
    assert "given" in names


def test_a_place_in_another_log_is_stored_with_the_writes(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append([logged(1)], journal_position="17")
    log.append([logged(2)])
    assert log.journal_position == "17"
    log.append([], journal_position="19")
    log.close()
    again = open_log(tmp_path)
    assert (again.journal_position, again.last) == ("19", 2)
    again.close()


def test_a_write_that_does_not_follow_the_last_one_is_not_stored(tmp_path: Path) -> None:
    log = write(tmp_path, some(1, 3))
    with pytest.raises(ValueError, match="write 4 does not follow 2"):
        log.append([logged(4)])
    with pytest.raises(ValueError, match="write 5 does not follow 3"):
        log.append([logged(3), logged(5)])
    log.append([logged(3)])
    log.close()
    assert written(tmp_path) == [*some(1, 3), logged(3)]


def test_a_trim_removes_writes_and_keeps_their_word_counts(tmp_path: Path) -> None:
    log = write(tmp_path, some(1, 601))
    log.trim(400)
    assert (log.trimmed, log.last) == (400, 600)
    assert list(log.read_after(400)) == some(401, 601)
    with pytest.raises(ArtefactError, match="begins after write 400"):
        list(log.read_after(399))
    log.append(some(601, 603))
    log.close()
    again = open_log(tmp_path)
    assert list(again.read_after(400)) == some(401, 603)
    again.trim(10**9)
    assert (again.trimmed, again.last) == (602, 602)
    again.append([logged(603)])
    again.close()
    assert written(tmp_path) == [logged(603)]


def test_two_nodes_never_feed_one_shard(tmp_path: Path) -> None:
    log = write(tmp_path, some(1, 3))
    for feeding in (True, False):
        with pytest.raises(ArtefactError, match="lock is held by another node"):
            open_log(tmp_path, feeding=feeding)
    log.close()
    readers = [open_log(tmp_path, feeding=False) for _ in range(2)]
    with pytest.raises(ArtefactError, match="lock is held by another node"):
        open_log(tmp_path)
    for reader in readers:
        reader.close()
    open_log(tmp_path).close()


def test_of_two_nodes_that_began_without_a_log_one_makes_it(tmp_path: Path) -> None:
    one, other = open_log(tmp_path), open_log(tmp_path)
    one.append([logged(1)])
    with pytest.raises(NotWritableError, match="lock is held by another node"):
        other.append([logged(1)])
    one.close()
    with pytest.raises(NotWritableError, match="another node created"):
        other.append([logged(1)])
    other.close()
    assert written(tmp_path) == [logged(1)]


def test_a_log_that_another_process_wrote_to_is_not_written_to(tmp_path: Path) -> None:
    log = write(tmp_path, some(1, 3))
    with sqlite3.connect(log_path(tmp_path)) as other:
        other.execute("UPDATE state SET last = 9")
    other.close()
    with pytest.raises(NotWritableError, match="its state is damaged"):
        log.append([logged(3)])
    log.close()


def test_a_log_whose_file_was_moved_away_takes_no_more_writes(tmp_path: Path) -> None:
    log = write(tmp_path, some(1, 3))
    log.path.rename(tmp_path / "aside")
    for _ in range(2):
        with pytest.raises(NotWritableError, match=r"writes\.sqlite"):
            log.append([logged(3)])
    (tmp_path / "aside").rename(log.path)
    log.append([logged(3)])
    log.close()
    assert written(tmp_path) == [*some(1, 3), logged(3)]


def test_other_processes_read_while_it_is_written_to(tmp_path: Path) -> None:
    log = write(tmp_path, some(1, 700))
    reading = read_writes(log_path(tmp_path), 0)
    first = next(reading)
    log.append(some(700, 702))
    log.acknowledge()
    assert [first, *reading] == some(1, 700)
    log.close()


def test_an_end_that_was_never_finished_is_dropped_and_said_so(tmp_path: Path) -> None:
    log = write(tmp_path, some(1, 3))
    whole = wal_path(log_path(tmp_path)).read_bytes()
    log.append(some(3, 9))  # and nobody is told
    longer = wal_path(log_path(tmp_path)).read_bytes()
    said = log.path.with_name(ACKNOWLEDGED_FILE).read_bytes()
    database = log.path.read_bytes()
    for place in range(len(whole), len(longer), 997):
        shard = tmp_path / f"cut-{place}"
        _lay(shard, database, longer[:place], said)
        with capture_logs() as logs:
            assert written(shard) == some(1, 3)
        assert any("unfinished end of a log" in each["event"] for each in logs) is (
            place > len(whole)
        )
    log.close()


def test_an_end_that_was_acknowledged_is_missed(tmp_path: Path) -> None:
    log = write(tmp_path, some(1, 3))
    short = wal_path(log_path(tmp_path)).read_bytes()
    log.append(some(3, 9))
    log.acknowledge()
    longer = wal_path(log_path(tmp_path)).read_bytes()
    said = log.path.with_name(ACKNOWLEDGED_FILE).read_bytes()
    database = log.path.read_bytes()
    for place in (0, 31, len(short), len(longer) - 1):
        shard = tmp_path / f"cut-{place}"
        _lay(shard, database, longer[:place], said)
        before = {path.name: path.read_bytes() for path in (shard / "live").iterdir()}
        with pytest.raises(ArtefactError, match=r"writes\.sqlite-wal is damaged or cut short"):
            open_log(shard)
        # all that is left can still be looked into
        assert {n: (shard / "live" / n).read_bytes() for n in before} == before
    log.close()


def test_a_log_whose_database_is_missing_is_missed(tmp_path: Path) -> None:
    write(tmp_path, some(1, 3)).close()
    log_path(tmp_path).unlink()
    with pytest.raises(ArtefactError, match=r"writes\.sqlite is missing"):
        open_log(tmp_path)


def test_a_log_of_which_nothing_says_how_far_it_was_acknowledged_is_taken_as_it_is(
    tmp_path: Path,
) -> None:
    write(tmp_path, some(1, 3)).close()
    log_path(tmp_path).with_name(ACKNOWLEDGED_FILE).unlink()
    with capture_logs() as logs:
        assert written(tmp_path) == some(1, 3)
    assert [each["event"] for each in logs] == ["log accepted without its acknowledgement file"]


def _lay(shard: Path, database: bytes, wal: bytes, acknowledged: bytes) -> None:
    live = shard / "live"
    live.mkdir(parents=True)
    log_path(shard).write_bytes(database)
    wal_path(log_path(shard)).write_bytes(wal)
    (live / ACKNOWLEDGED_FILE).write_bytes(acknowledged)


def test_a_new_log_never_appears_without_its_position_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot, or a kill, between both would leave a replica that cannot follow the journal."""
    appeared: list[State | None] = []
    monkeypatch.setattr(
        log_module, "reach", lambda _: appeared.append(read_state(log_path(tmp_path)))
    )
    log = open_log(tmp_path)
    log.append([], "0", "journal-1")
    log.close()
    assert appeared
    assert {(state.log_id, state.journal_position) for state in appeared if state} == {
        ("journal-1", "0")
    }
    assert None not in appeared


def test_a_new_log_has_no_position_of_writes_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(log_module, "reach", fail)
    log = open_log(tmp_path)
    with pytest.raises(WinnowError, match="the disk is full"):
        log.append(some(1, 3), "7 key", "journal-1")
    state = read_state(log_path(tmp_path))
    assert state is not None
    assert (state.last, state.journal_position) == (0, "")
    log.close()
