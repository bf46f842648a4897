"""A shard that is pulled from a snapshot: once, and never over existing files."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Recorder

from winnow.content_node.snapshots.restoring import restore_if_missing
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError, NotFoundError, UnavailableError

SHARD = shard_name(0, 2)


@pytest.fixture
def url(indexes: dict[int, Path], tmp_path: Path) -> str:
    """Of a shard that was copied."""
    place = str(tmp_path / "snapshots")
    take_snapshot(indexes[2], place, Recorder(), lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return f"{place}/{SHARD}"


def test_a_shard_is_pulled_once_and_then_left_alone(url: str, tmp_path: Path) -> None:
    target = tmp_path / "shard"
    first = restore_if_missing(url, target, Recorder())
    assert first.restored is not None
    assert first.restored.shard == SHARD
    (target / "live").mkdir()
    (target / "live" / "writes.sqlite").write_text("taken since")
    second = restore_if_missing(url, target, Recorder())
    assert second.restored is None
    assert not second.unreachable
    assert (target / "live" / "writes.sqlite").read_text() == "taken since"


def test_replicas_pull_the_same_snapshot_by_its_name(
    url: str, indexes: dict[int, Path], tmp_path: Path
) -> None:
    place = url.rpartition("/")[0]
    named = restore_if_missing(url, tmp_path / "first", Recorder()).restored
    assert named is not None
    take_snapshot(indexes[2], place, Recorder(), lambda: datetime(2026, 1, 2, tzinfo=UTC))
    again = restore_if_missing(url, tmp_path / "second", Recorder(), named.snapshot.name).restored
    newest = restore_if_missing(url, tmp_path / "third", Recorder()).restored
    assert again is not None
    assert newest is not None
    assert again.snapshot.name == named.snapshot.name != newest.snapshot.name
    with pytest.raises(NotFoundError, match="no snapshot 'gone'"):
        restore_if_missing(url, tmp_path / "fourth", Recorder(), "gone")


def test_another_shard_is_not_replaced(url: str, indexes: dict[int, Path], tmp_path: Path) -> None:
    target = shutil.copytree(indexes[2] / shard_name(1, 2), tmp_path / "shard")
    with pytest.raises(ArtefactError, match="holds another shard, or another build of the shard"):
        restore_if_missing(url, target, Recorder())


def test_a_directory_that_is_no_shard_is_refused(url: str, tmp_path: Path) -> None:
    (tmp_path / "shard").mkdir()
    with pytest.raises(ArtefactError, match="is this a shard of an index"):
        restore_if_missing(url, tmp_path / "shard", Recorder())


def test_a_present_shard_is_served_if_the_place_is_unreachable(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    target = shutil.copytree(indexes[2] / SHARD, tmp_path / "shard")
    pulled = restore_if_missing(f"nonsense://x/{SHARD}", target, Recorder())
    assert pulled.restored is None
    assert "Protocol not known" in pulled.unreachable
    with pytest.raises(UnavailableError):
        restore_if_missing(f"nonsense://x/{SHARD}", tmp_path / "none", Recorder())


def test_a_present_shard_is_served_if_there_is_no_snapshot_any_more(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    target = shutil.copytree(indexes[2] / SHARD, tmp_path / "shard")
    pulled = restore_if_missing(f"{tmp_path}/none/{SHARD}", target, Recorder())
    assert pulled.restored is None
    assert "there is no snapshot at" in pulled.unreachable
    with pytest.raises(NotFoundError, match="there is no snapshot at"):
        restore_if_missing(f"{tmp_path}/none/{SHARD}", tmp_path / "new", Recorder())


def test_a_present_shard_is_served_if_the_newest_snapshot_cannot_be_read(
    url: str, tmp_path: Path
) -> None:
    """It was damaged there, or a newer version has taken it: nothing of it is needed."""
    target = tmp_path / "shard"
    restore_if_missing(url, target, Recorder())
    (Path(url).parent / "snapshots" / "29990101T000000000-newer.json").write_text('{"format": 2}')
    pulled = restore_if_missing(url, target, Recorder())
    assert pulled.restored is None
    assert "29990101T000000000-newer.json is damaged" in pulled.unreachable
    with pytest.raises(ArtefactError, match="is damaged"):
        restore_if_missing(url, tmp_path / "new", Recorder())


def test_a_url_that_names_no_shard_is_refused(url: str, tmp_path: Path) -> None:
    place = url.removesuffix(f"/{SHARD}")
    with pytest.raises(NotFoundError, match=f"names no shard: .* such as {place}/shard-00000"):
        restore_if_missing(place, tmp_path / "shard", Recorder())
