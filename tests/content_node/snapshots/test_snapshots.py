"""Snapshots of indexes that were built: taken, interrupted, listed, restored, refused."""

import errno
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from conftest import Recorder
from damaged_files import flip_bit

from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.content_node.snapshots.restoring import restore_snapshot
from winnow.content_node.snapshots.stored_snapshots import (
    FILES,
    SNAPSHOTS,
    open_snapshots,
    read_snapshots,
    snapshot_names,
    split_url,
)
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError, NotFoundError, UnavailableError
from winnow.storage.local import LocalStorage
from winnow.storage.partial import open_partial

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Ticking:
    """A clock that goes on by a second each time it is looked at."""

    def __init__(self) -> None:
        self._now = NOON

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


CLOCK = Ticking()


def taken(source: Path, url: object) -> Snapshot:
    return take_snapshot(source, str(url), Recorder(), CLOCK)


def content(directory: Path) -> dict[str, bytes]:
    files = (each for each in directory.rglob("*") if each.is_file())
    return {each.relative_to(directory).as_posix(): each.read_bytes() for each in files}


@pytest.fixture(params=["directory", "file url", "object store"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    places = {
        "directory": str(tmp_path / "snapshots"),
        "file url": f"file://{tmp_path}/snapshots",
        "object store": f"memory://{uuid4().hex}/snapshots",
    }
    return places[request.param]


@pytest.fixture
def index(indexes: dict[int, Path], tmp_path: Path) -> Path:
    """Of two shards; may be changed."""
    return shutil.copytree(indexes[2], tmp_path / "index")


def test_a_restored_index_is_equal_byte_for_byte(index: Path, url: str, tmp_path: Path) -> None:
    snapshot = taken(index, url)
    assert snapshot.whole
    assert [part.sequence for part in snapshot.parts] == [0, 0]
    restore_snapshot(url, tmp_path / "restored", Recorder())
    assert content(tmp_path / "restored") == content(index)
    assert not any(report.faults for report in verify_index(tmp_path / "restored", 10, 0.9))
    assert not (tmp_path / "restored.partial").exists()


def test_a_shard_of_an_index_is_restored_by_its_name(index: Path, url: str, tmp_path: Path) -> None:
    taken(index, url)
    restore_snapshot(f"{url}/{shard_name(1, 2)}", tmp_path / "one", Recorder())
    assert content(tmp_path / "one") == content(index / shard_name(1, 2))


def test_a_snapshot_of_one_shard_holds_that_shard(index: Path, url: str, tmp_path: Path) -> None:
    snapshot = taken(index / shard_name(1, 2), url)
    assert not snapshot.whole
    with pytest.raises(
        NotFoundError, match=f"restore a shard of the snapshot .*, such as .*{shard_name(1, 2)}"
    ):
        restore_snapshot(url, tmp_path / "whole", Recorder())
    with pytest.raises(NotFoundError, match=f"has {shard_name(0, 2)}"):
        restore_snapshot(f"{url}/{shard_name(0, 2)}", tmp_path / "other", Recorder())
    restore_snapshot(f"{url}/{shard_name(1, 2)}", tmp_path / "one", Recorder())
    assert content(tmp_path / "one") == content(index / shard_name(1, 2))


def test_the_newest_snapshot_with_the_wanted_shard_is_restored(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    url = str(tmp_path / "snapshots")
    first = taken(indexes[2], url)
    taken(indexes[3], url)
    last = taken(indexes[2] / shard_name(0, 2), url)
    found = restore_snapshot(url, tmp_path / "whole", Recorder())
    assert found.snapshot.shards == 3
    found = restore_snapshot(f"{url}/{shard_name(0, 2)}", tmp_path / "shard", Recorder())
    assert found.snapshot == last
    found = restore_snapshot(url, tmp_path / "named", Recorder(), first.name)
    assert found.snapshot == first


def test_files_at_the_place_are_not_copied_again(index: Path, url: str) -> None:
    taken(index, url)
    system, root = fsspec.url_to_fs(url)
    before = {each: system.modified(each) for each in system.ls(f"{root}/{FILES}", detail=False)}
    second = taken(index, url)
    after = {each: system.modified(each) for each in system.ls(f"{root}/{FILES}", detail=False)}
    assert before == after
    assert snapshot_names(open_snapshots(url))[0] == second.name


@pytest.mark.graph
def test_a_file_that_was_cut_off_is_copied_again(index: Path, url: str, tmp_path: Path) -> None:
    snapshot = taken(index, url)
    entry = snapshot.files[f"{shard_name(0, 2)}/graph.hnsw"]
    system, root = fsspec.url_to_fs(url)
    system.pipe_file(f"{root}/{FILES}/{entry.sha256}", b"cut off")
    taken(index, url)
    restore_snapshot(url, tmp_path / "restored", Recorder())
    assert content(tmp_path / "restored") == content(index)


class Full(LocalStorage):
    """A place that takes a number of files and then no more."""

    room = 3

    def upload(self, *arguments: object) -> None:
        if not self.room:
            raise UnavailableError("no room")
        self.room -= 1
        super().upload(*arguments)  # type: ignore[arg-type]


def test_an_interrupted_snapshot_is_none_and_the_next_one_goes_on_from_it(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "snapshots"
    with monkeypatch.context() as patched:
        patched.setattr(
            "winnow.content_node.snapshots.taking.open_snapshots",
            lambda url: Full(Path(url), "snapshots"),
        )
        with pytest.raises(UnavailableError, match="no room"):
            taken(index, place)
    assert snapshot_names(open_snapshots(str(place))) == []
    with pytest.raises(NotFoundError, match="there is no snapshot at"):
        restore_snapshot(str(place), tmp_path / "restored", Recorder())
    copied = {each: each.stat().st_mtime_ns for each in (place / FILES).iterdir()}
    assert len(copied) == Full.room
    taken(index, place)
    assert copied.items() <= {e: e.stat().st_mtime_ns for e in (place / FILES).iterdir()}.items()
    restore_snapshot(str(place), tmp_path / "restored", Recorder())
    assert content(tmp_path / "restored") == content(index)


def test_a_damaged_file_is_named_and_nothing_appears(index: Path, url: str, tmp_path: Path) -> None:
    snapshot = taken(index, url)
    entry = snapshot.files[f"{shard_name(1, 2)}/passages.sqlite"]
    system, root = fsspec.url_to_fs(url)
    system.pipe_file(f"{root}/{FILES}/{entry.sha256}", b"x" * entry.bytes)
    with pytest.raises(ArtefactError, match=f"{shard_name(1, 2)}/passages.sqlite.* is damaged"):
        restore_snapshot(url, tmp_path / "restored", Recorder())
    assert not (tmp_path / "restored").exists()


def test_a_missing_file_is_named(index: Path, url: str, tmp_path: Path) -> None:
    snapshot = taken(index, url)
    entry = snapshot.files[f"{shard_name(0, 2)}/tokens.npy"]
    system, root = fsspec.url_to_fs(url)
    system.rm_file(f"{root}/{FILES}/{entry.sha256}")
    with pytest.raises(ArtefactError, match=rf"is missing \({FILES}/{entry.sha256}\)"):
        restore_snapshot(url, tmp_path / "restored", Recorder())


@pytest.mark.parametrize("place", range(0, 4000, 97))
def test_no_byte_of_the_manifest_can_be_another(index: Path, tmp_path: Path, place: int) -> None:
    """And an older snapshot is never taken for the newest."""
    url = tmp_path / "snapshots"
    taken(index, url)
    newest = url / SNAPSHOTS / f"{taken(index, url).name}.json"
    flip_bit(newest, place % newest.stat().st_size)
    with pytest.raises(ArtefactError, match=r"is damaged|cannot be used"):
        restore_snapshot(str(url), tmp_path / "restored", Recorder())


@pytest.mark.parametrize("path", ["../out", "/etc/x", "shard-00000-of-00002/../../x", "a\\b", ""])
def test_no_snapshot_writes_outside_of_the_directory(
    index: Path, tmp_path: Path, path: str
) -> None:
    snapshot = taken(index, tmp_path / "snapshots")
    entry = snapshot.files["index.json"]
    bad = snapshot.model_copy(update={"name": "99", "files": {**snapshot.files, path: entry}})
    (tmp_path / "snapshots" / SNAPSHOTS / "99.json").write_bytes(bad.encode())
    with pytest.raises(ArtefactError, match="cannot be used"):
        restore_snapshot(str(tmp_path / "snapshots"), tmp_path / "restored", Recorder())


@pytest.mark.parametrize(
    ("parts", "without"),
    [((), ""), ((0, 0, 1), ""), ((0, 1), "shard-00001-of-00002/manifest.json")],
)
def test_no_snapshot_restores_other_files_than_shards(
    index: Path, tmp_path: Path, parts: tuple[int, ...], without: str
) -> None:
    snapshot = taken(index, tmp_path / "snapshots")
    bad = snapshot.model_copy(
        update={
            "name": "99",
            "parts": tuple(snapshot.parts[part] for part in parts),
            "files": {n: e for n, e in snapshot.files.items() if parts and n != without},
        }
    )
    (tmp_path / "snapshots" / SNAPSHOTS / "99.json").write_bytes(bad.encode())
    for end in ("", "/shard-00001-of-00002"):
        with pytest.raises(ArtefactError, match="cannot be used"):
            restore_snapshot(f"{tmp_path}/snapshots{end}", tmp_path / "restored", Recorder())
    assert not (tmp_path / "restored").exists()


@pytest.mark.graph
def test_a_damaged_index_is_not_copied(index: Path, tmp_path: Path) -> None:
    graph = index / shard_name(1, 2) / "graph.hnsw"
    graph.write_bytes(bytes(graph.stat().st_size))
    with pytest.raises(ArtefactError, match=f"{graph} is damaged"):
        taken(index, tmp_path / "snapshots")
    assert snapshot_names(open_snapshots(f"{tmp_path}/snapshots")) == []


def test_a_shard_of_another_build_is_not_copied(indexes: dict[int, Path], tmp_path: Path) -> None:
    index = shutil.copytree(indexes[2], tmp_path / "index")
    manifest = index / "index.json"
    shard = index / shard_name(1, 2)
    shutil.rmtree(shard)
    shutil.copytree(index / shard_name(0, 2), shard)
    with pytest.raises(
        ArtefactError, match=f"{shard} is not of its index: its manifest is of shard 0"
    ):
        taken(index, tmp_path / "snapshots")
    assert manifest.exists()


def test_nothing_is_restored_over_existing_files(index: Path, tmp_path: Path) -> None:
    taken(index, tmp_path / "snapshots")
    with pytest.raises(ArtefactError, match="exists already"):
        restore_snapshot(str(tmp_path / "snapshots"), index, Recorder())
    (tmp_path / "new.partial").mkdir()
    (tmp_path / "new.partial" / "thesis.txt").write_text("mine")
    with pytest.raises(ArtefactError, match=r"holds the unrelated file thesis.txt"):
        restore_snapshot(str(tmp_path / "snapshots"), tmp_path / "new", Recorder())


def test_two_restores_of_one_directory_are_kept_apart(index: Path, tmp_path: Path) -> None:
    taken(index, tmp_path / "snapshots")
    with (
        open_partial(tmp_path / "restored"),
        pytest.raises(UnavailableError, match="another process is restoring"),
    ):
        restore_snapshot(str(tmp_path / "snapshots"), tmp_path / "restored", Recorder())
    restore_snapshot(str(tmp_path / "snapshots"), tmp_path / "restored", Recorder())
    assert content(tmp_path / "restored") == content(index)


class Breaking(LocalStorage):
    """A place that breaks off in the middle of a file."""

    def download(self, path: str, target: Path, *arguments: object) -> None:
        super().download(path, target, *arguments)  # type: ignore[arg-type]
        if target.name == "graph.hnsw":
            target.write_bytes(target.read_bytes()[:100])
            raise OSError(errno.ENOSPC, "No space left on device", str(target))


@pytest.mark.graph
def test_a_full_disk_is_one_line_and_the_same_restore_goes_on(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "snapshots")
    taken(index, url)
    target = tmp_path / "restored"
    with monkeypatch.context() as patched:
        patched.setattr(
            "winnow.content_node.snapshots.stored_snapshots.open_snapshots",
            lambda url: Breaking(Path(url), "snapshots"),
        )
        with pytest.raises(
            ArtefactError, match=r"graph.hnsw: No space left on device: free disk space"
        ):
            restore_snapshot(url, target, Recorder())
    assert not target.exists()
    kept = {
        path: path.stat().st_ino for path in target.with_name("restored.partial").rglob("*.sqlite")
    }
    assert kept
    restore_snapshot(url, target, Recorder())
    assert content(target) == content(index)
    moved = {path.stat().st_ino for path in target.rglob("*.sqlite")}
    assert set(kept.values()) <= moved


def test_leftovers_of_another_restore_are_not_restored(
    index: Path, indexes: dict[int, Path], tmp_path: Path
) -> None:
    url = str(tmp_path / "snapshots")
    taken(index, url)
    left = tmp_path / "restored.partial" / "content"
    shutil.copytree(indexes[3], left)
    (left / "shard-00000-of-00002" / "live" / "generation-00000000000000000007").mkdir(parents=True)
    restore_snapshot(url, tmp_path / "restored", Recorder())
    assert content(tmp_path / "restored") == content(index)
    folders = [each for each in (tmp_path / "restored").rglob("*") if each.is_dir()]
    assert len(folders) == 2


def test_a_place_that_cannot_be_written_is_named(index: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(UnavailableError, match=r"cannot use .*file.* for snapshots: "):
        taken(index, tmp_path / "file")


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(index: Path, tmp_path: Path) -> None:
    snapshot = taken(index, tmp_path / "snapshots")
    with pytest.raises(NotFoundError, match=f"no snapshot 'x/../y' .*; there are {snapshot.name}"):
        restore_snapshot(str(tmp_path / "snapshots"), tmp_path / "restored", Recorder(), "x/../y")


def test_a_directory_that_is_no_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtefactError, match="is this a shard of an index"):
        taken(tmp_path / "empty", tmp_path / "snapshots")


def test_snapshots_are_not_put_into_an_index(index: Path, tmp_path: Path) -> None:
    for place in (index, index / shard_name(0, 2)):
        with pytest.raises(ArtefactError, match="give another directory, only for snapshots"):
            taken(index, place)
    assert not (index / "files").exists()


def test_each_shard_is_a_stage(index: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    take_snapshot(index, str(tmp_path / "snapshots"), recorder, CLOCK)
    stages = [stage for stage, _, _ in recorder.stages if stage.startswith("copying shard")]
    assert stages[:2] == [f"copying shard {shard} of 2, MB" for shard in range(2)]


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3://b/i/shard-00001-of-00003", ("s3://b/i", "shard-00001-of-00003")),
        ("s3://b/i/shard-00001-of-00003/", ("s3://b/i", "shard-00001-of-00003")),
        ("/a/b", ("/a/b", "")),
        ("shard-00001-of-00003", ("shard-00001-of-00003", "")),
    ],
)
def test_a_url_may_name_a_shard(url: str, parts: tuple[str, str]) -> None:
    assert split_url(url) == parts


def test_a_snapshot_is_written_as_it_is_read(index: Path, tmp_path: Path) -> None:
    snapshot = taken(index, tmp_path / "snapshots")
    written = json.loads((tmp_path / "snapshots" / SNAPSHOTS / f"{snapshot.name}.json").read_text())
    assert written["format"] == 1
    assert written["files"].keys() == content(index).keys()
    (found,) = read_snapshots(open_snapshots(f"{tmp_path}/snapshots"))
    assert found == snapshot
