"""Snapshots of a shard that takes writes meanwhile, and is merged."""

import contextlib
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Recorder
from live_shards import built
from live_writes import logged, put
from moving_shards import merged, opened, store
from prometheus_client import CollectorRegistry
from tenacious import until

from winnow.content_node.live.acknowledged import ACKNOWLEDGED_FILE
from winnow.content_node.live.custody import Custody, Role, write_custody
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.reading import LOG, log_path
from winnow.content_node.merging.names import LIVE, generation_path
from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest, write_manifest
from winnow.content_node.snapshots import contents as of_shard
from winnow.content_node.snapshots.contents import LogCopy, copy_log
from winnow.content_node.snapshots.last_snapshot import SnapshotMetrics
from winnow.content_node.snapshots.manifest import SnapshotShard
from winnow.content_node.snapshots.restoring import restore_if_missing, restore_snapshot
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.content_node.splitting.write_half import write_half
from winnow.domain.partition import halves_of
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError, UnavailableError

SHARD = shard_name(0, 1)


@pytest.fixture
def shard(indexes: dict[int, Path], tmp_path: Path) -> Path:
    return shutil.copytree(indexes[1] / SHARD, tmp_path / "shard")


def taken(shard: Path) -> SnapshotShard:
    """A snapshot, beside the shard."""
    url = str(shard.with_name("snapshots"))
    (part,) = take_snapshot(shard, url, Recorder(), lambda: datetime.now(UTC)).parts
    return part


def restored(shard: Path) -> Path:
    """What the newest snapshot holds."""
    target = shard.with_name("restored")
    shutil.rmtree(target, ignore_errors=True)
    restore_snapshot(str(shard.with_name("snapshots") / SHARD), target, Recorder())
    return target


def written(shard: Path) -> list[LoggedWrite]:
    """All that the log holds, wherever it begins."""
    with contextlib.closing(open_log(shard, feeding=False)) as log:
        return list(log.read_after(log.trimmed))


def write(log: WriteLog, count: int) -> None:
    log.append([logged(log.last + 1 + n) for n in range(count)])
    log.acknowledge()


def merge(shard: Path, log: WriteLog, upto: int) -> None:
    """As a merge leaves it: the passages are not what matters here."""
    generation = generation_path(shard, upto)
    shutil.copytree(shard, generation, ignore=shutil.ignore_patterns(LIVE))
    manifest = read_shard_manifest(shard)
    changes = {"sequence": upto, "log_id": log.log_id}
    write_manifest(generation / SHARD_FILE, manifest.model_copy(update=changes))
    log.trim(upto)
    for older in (shard / LIVE).glob("generation-*"):
        if older.name < generation.name:
            shutil.rmtree(older)


def test_a_shard_that_was_never_written_to_is_at_write_0(shard: Path) -> None:
    assert taken(shard).sequence == 0
    assert not (restored(shard) / LIVE).exists()


def test_the_log_is_in_it_and_goes_on_where_it_is_restored(shard: Path) -> None:
    log = open_log(shard)
    write(log, 7)
    assert taken(shard).sequence == 7
    copy = restored(shard)
    assert written(copy) == list(log.read_after(0))
    again = open_log(copy)
    assert again.last == 7
    write(again, 1)
    with pytest.raises(ArtefactError, match="held by another node"):
        open_log(copy)
    again.close()
    log.close()


def test_a_restored_log_has_another_name(shard: Path) -> None:
    """Or two that go on apart would be taken for replicas of one log."""
    log = open_log(shard)
    write(log, 4)
    merge(shard, log, 3)
    taken(shard)
    names = {log.log_id}
    for _ in range(2):
        copy = restored(shard)
        with contextlib.closing(open_log(copy)) as again:
            names.add(again.log_id)
            assert read_shard_manifest(generation_path(copy, 3)).log_id == again.log_id
            assert [each.sequence for each in again.read_after(3)] == [4]
    assert len(names) == 3
    log.close()


def test_a_log_that_follows_a_journal_keeps_its_name(shard: Path) -> None:
    with contextlib.closing(open_log(shard)) as log:
        log.append([logged(1)], "1 key", "journal-1")
        log.acknowledge()
        taken(shard)
    with contextlib.closing(open_log(restored(shard))) as again:
        assert (again.log_id, again.journal_position) == ("journal-1", "1 key")


def test_a_snapshot_under_load_is_the_log_up_to_the_write_that_it_states(shard: Path) -> None:
    log = open_log(shard)
    write(log, 3)
    ended = threading.Event()

    def feed() -> None:
        while not ended.is_set():
            write(log, 5)

    feeding = threading.Thread(target=feed)
    feeding.start()
    try:
        for _ in range(5):
            acknowledged = log.last
            sequence = taken(shard).sequence
            assert acknowledged <= sequence
            assert written(restored(shard)) == [logged(n) for n in range(1, sequence + 1)]
            until(lambda now=log.last: log.last > now)  # type: ignore[misc]
    finally:
        ended.set()
        feeding.join()
        log.close()


def test_the_newest_generation_and_the_writes_since_are_in_it(shard: Path) -> None:
    log = open_log(shard)
    write(log, 6)
    merge(shard, log, 2)
    merge(shard, log, 4)
    (shard / LIVE / "generation-00000000000000000009.partial").mkdir()
    assert taken(shard).sequence == 6
    copy = restored(shard)
    assert [each.name for each in (copy / LIVE).glob("generation-*")] == [
        generation_path(shard, 4).name
    ]
    assert [each.sequence for each in written(copy)] == [5, 6]
    log.close()


def test_a_merge_in_between_loses_nothing(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is trimmed after the generation was looked up, and before the log is copied."""
    log = open_log(shard)
    write(log, 6)
    merges = iter([2, 4])

    def copy_after_merging(directory: Path, room: Path) -> LogCopy | None:
        for upto in merges:
            merge(shard, log, upto)
            break
        return copy_log(directory, room)

    monkeypatch.setattr(of_shard, "copy_log", copy_after_merging)
    assert taken(shard).sequence == 6
    copy = restored(shard)
    assert generation_path(copy, 4).is_dir()
    assert [each.sequence for each in written(copy)] == [5, 6]
    log.close()


def test_a_merge_that_removes_what_is_being_copied_changes_nothing(
    shard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(shard)
    write(log, 6)
    merge(shard, log, 2)

    def copy_and_merge(directory: Path, room: Path) -> LogCopy | None:
        copy = copy_log(directory, room)
        if log.trimmed < 4:
            merge(shard, log, 4)
        return copy

    monkeypatch.setattr(of_shard, "copy_log", copy_and_merge)
    assert taken(shard).sequence == 6
    copy = restored(shard)
    assert generation_path(copy, 2).is_dir()
    assert [each.sequence for each in written(copy)] == [3, 4, 5, 6]
    log.close()


def test_endless_merges_are_an_error(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(shard)
    write(log, 9)
    merges = iter(range(1, 9))

    def copy_after_merging(directory: Path, room: Path) -> LogCopy | None:
        merge(shard, log, next(merges))
        return copy_log(directory, room)

    monkeypatch.setattr(of_shard, "copy_log", copy_after_merging)
    with pytest.raises(UnavailableError, match="merged in each of 5 attempts"):
        taken(shard)
    log.close()


def test_a_damaged_log_is_not_copied(shard: Path) -> None:
    log = open_log(shard)
    write(log, 50)
    log.close()
    data = log_path(shard).read_bytes()  # which has stale pages, too
    log_path(shard).write_bytes(data.replace(b"some words", b"some swords"[:10]))
    with pytest.raises(ArtefactError, match=r"writes.sqlite.* is damaged"):
        taken(shard)
    assert not list(shard.parent.glob("snapshots/snapshots/*"))


@pytest.mark.parametrize("merged", [False, True])
def test_a_shard_whose_log_is_missing_is_not_copied(shard: Path, merged: bool) -> None:
    """As no node would serve it: writes were acknowledged that nobody has any more."""
    log = open_log(shard)
    write(log, 5)
    if merged:
        merge(shard, log, 5)
    log.close()
    for name in (LOG, ACKNOWLEDGED_FILE) if merged else (LOG,):
        (shard / LIVE / name).unlink()
    with pytest.raises(
        ArtefactError, match=r"writes.sqlite (is|has log id) .*copy the shard again"
    ):
        taken(shard)
    assert not list(shard.parent.glob("snapshots/snapshots/*"))


def test_a_log_of_another_shard_is_not_copied(shard: Path) -> None:
    log = open_log(shard)
    write(log, 5)
    merge(shard, log, 5)
    log.close()
    shutil.rmtree(generation_path(shard, 5))
    with pytest.raises(
        ArtefactError, match="holds writes 6 to 5, but the shard's base ends at write"
    ):
        taken(shard)


def test_a_generation_that_is_damaged_is_not_copied(shard: Path) -> None:
    log = open_log(shard)
    write(log, 2)
    merge(shard, log, 2)
    log.close()
    damaged = generation_path(shard, 2) / "manifest.json"
    damaged.write_bytes(damaged.read_bytes().replace(b"l2", b"l3"))
    with pytest.raises(ArtefactError, match=r"manifest\.json is damaged"):
        taken(shard)


def test_unchanged_files_are_not_copied_again(shard: Path) -> None:
    log = open_log(shard)
    write(log, 2)
    merge(shard, log, 2)
    taken(shard)
    files = shard.with_name("snapshots") / "files"
    before = {each.name for each in files.iterdir()}
    write(log, 1)
    taken(shard)
    new = {each.name for each in files.iterdir()} - before
    assert len(new) == 2  # the log, and how far it was acknowledged
    log.close()


def figures(shard: Path) -> tuple[float | None, float | None]:
    """When the last snapshot was taken, and its last write, as Prometheus is told."""
    registry = CollectorRegistry()
    SnapshotMetrics(registry, shard)
    names = ("timestamp_seconds", "sequence")
    when, last = (registry.get_sample_value(f"winnow_node_snapshot_{name}") for name in names)
    return when, last


def test_a_shard_knows_its_last_snapshot_and_a_restored_one_knows_none(shard: Path) -> None:
    taken(shard)
    assert figures(shard) == (None, None)  # nothing was written: it can be built again
    with contextlib.closing(open_log(shard)) as log:
        write(log, 3)
        before = datetime.now(UTC).timestamp()
        taken(shard)
        when, last = figures(shard)
        assert when is not None
        assert when >= before - 0.001  # a snapshot's time has milliseconds
        assert last == 3
        write(log, 2)
        taken(shard)
    assert figures(shard)[1] == 5
    assert figures(restored(shard)) == (None, None)


def test_a_note_that_is_damaged_or_cannot_be_written_changes_nothing(shard: Path) -> None:
    with contextlib.closing(open_log(shard)) as log:
        write(log, 1)
    taken(shard)
    place = shard / LIVE / "snapshot.json"
    place.write_text("{")
    assert figures(shard) == (None, None)
    place.unlink()
    place.mkdir()  # cannot be replaced by a file
    assert taken(shard).sequence == 1
    assert figures(shard) == (None, None)


def test_a_log_that_is_made_while_a_snapshot_looks_for_it_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, exists = open_log(tmp_path), Path.exists

    def looked(path: Path) -> bool:
        found = exists(path)
        if path == log.path:
            monkeypatch.undo()
            log.append([logged(1)])
        return found

    monkeypatch.setattr(Path, "exists", looked)
    assert copy_log(tmp_path, tmp_path / "room") is None
    assert log.last == 1
    log.close()


async def test_a_half_of_a_merged_shard_is_restored_and_opened(tmp_path: Path) -> None:
    """The base of such a half has the id of the log, which a restore changes."""
    directory = built(tmp_path, {"a": "one two", "b": "two two three", "c": "four"})
    parent = opened(directory)
    await store(parent, *[put(name, f"text of {name}") for name in "abcdefgh"])
    await merged(parent, directory)
    half = tmp_path / shard_name(1, 1)
    half.mkdir()
    write_half(parent.directory, directory, 1, half, following=False)
    await parent.close()
    take_snapshot(half, str(tmp_path / "snapshots"), Recorder(), lambda: datetime.now(UTC))
    url, target = str(tmp_path / "snapshots" / half.name), tmp_path / "restored"
    restore_if_missing(url, target, Recorder())
    live = opened(target)
    assert live.view.passages > 0
    await live.close()
    assert restore_if_missing(url, target, Recorder()).restored is None


@pytest.mark.parametrize("depth", [1, 12])
def test_a_half_of_a_shard_is_taken_and_restored(shard: Path, depth: int) -> None:
    number, half = 0, shard
    for _ in range(depth):
        number, parent = halves_of(number, 1)[1], half
        half = shard.with_name(shard_name(number, 1))
        half.mkdir()
        write_half(parent, parent, number, half, following=False)
    url = shard.with_name("snapshots")
    (part,) = take_snapshot(half, str(url), Recorder(), lambda: datetime.now(UTC)).parts
    target = shard.with_name("restored")
    restore_snapshot(str(url / half.name), target, Recorder())
    assert read_shard_manifest(target).shard == part.shard == number


@pytest.mark.parametrize(
    ("custody", "advice"),
    [
        (Custody(Role.FORMER_OWNER), "use its halves"),
        (Custody(Role.FORMER_OWNER, "b"), "use the copy of node b"),
        (Custody(Role.FOLLOWER, "b"), "use the copy of node b"),
        (Custody(Role.FOLLOWER, parent=0), "wait until the split is finished"),
    ],
)
def test_a_copy_that_may_lack_writes_is_not_taken(
    shard: Path, custody: Custody, advice: str
) -> None:
    write_custody(shard, custody)
    with pytest.raises(ArtefactError, match=advice):
        taken(shard)
