"""States that were computed beforehand come along with a snapshot, and are never in its way."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Recorder
from damaged_files import flip_bit
from fake_split_reader import lower
from fake_token_vectors import FINGERPRINT, write_token_vectors
from live_shards import Fed, built
from structlog.testing import capture_logs

from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.merging.merge import merge
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.snapshots.restoring import restore_snapshot
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.content_node.states.manifest import DATA, FILES, STARTS, STATES_FILE
from winnow.content_node.states.writing import StatesWriter
from winnow.errors import ArtefactError
from winnow.files.opened import sha256
from winnow.reading.states_kind import TOKEN_VECTORS

TEXTS = {f"built {n}": f"text number {n} of {n % 7}" for n in range(30)}


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return built(tmp_path, TEXTS)


def write(directory: Path) -> None:
    StatesWriter(directory, lower()).write(1, lambda *_: None, lambda _: None)


def restored(shard: Path) -> Path:
    """What a snapshot of a shard, taken now, holds."""
    url, target = shard.parent / "snapshots", shard.parent / "restored"
    take_snapshot(shard, str(url), Recorder(), lambda: datetime.now(UTC))
    restore_snapshot(str(url / shard.name), target, Recorder())
    return target


def opened(directory: Path, fingerprint: str = "f" * 16) -> StoredSegment:
    return open_shard(
        read_current_shard(directory).base, ef=64, lower_layers_fingerprint=fingerprint
    )


def expect_states(directory: Path) -> None:
    segment = opened(directory)
    for row in segment.store.row_numbers().tolist():
        assert segment.load(row).states is not None


def test_states_of_a_shard_as_it_was_built_come_along(shard: Path) -> None:
    write(shard)
    expect_states(restored(shard))


def test_states_of_the_newest_generation_come_along_under_its_new_name(shard: Path) -> None:
    write(shard)
    fed = Fed(shard, TEXTS)
    fed.apply([("new 0", "one"), ("built 3", None)])
    merge(shard, shard, fed.log.last)
    write(read_current_shard(shard).base)
    fed.apply([("new 1", "two")])
    copy = restored(shard)
    assert (
        read_current_shard(copy).manifest.generation
        != read_current_shard(shard).manifest.generation
    )
    expect_states(copy)
    assert not any((copy / name).exists() for name in FILES)  # nobody would use them


def test_a_shard_without_states_is_restored_as_before(shard: Path) -> None:
    copy = restored(shard)
    assert opened(copy).states is None
    assert not any((copy / name).exists() for name in FILES)


@pytest.mark.parametrize("name", [STATES_FILE, DATA, STARTS])
def test_damaged_states_are_left_out_of_a_snapshot(shard: Path, name: str) -> None:
    write(shard)
    flip_bit(shard / name)
    with capture_logs() as logs:
        copy = restored(shard)
    assert "not in the snapshot" in logs[0]["event"]
    assert opened(copy).states is None
    assert not any((copy / name).exists() for name in FILES)


def test_states_of_another_reader_are_restored_and_not_used(shard: Path) -> None:
    write(shard)
    assert opened(restored(shard), "0" * 16).states is None


def test_damaged_states_do_not_keep_token_vectors_out_of_a_snapshot(shard: Path) -> None:
    """Without those of one shard, no question would be ranked by late interaction."""
    write(shard)
    write_token_vectors(shard)
    flip_bit(shard / DATA)
    copy = restored(shard)
    assert open_shard(copy, ef=64, token_vectors_fingerprint=FINGERPRINT).token_vectors is not None
    assert not any((copy / name).exists() for name in FILES)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [flip_bit, Path.unlink])
def test_states_that_are_damaged_in_the_storage_are_left_out_of_a_restore(
    shard: Path, name: str, damage: Callable[[Path], None]
) -> None:
    """A shard can do without them, and nothing else may be left of it."""
    write(shard)
    write_token_vectors(shard)
    url, target = shard.parent / "snapshots", shard.parent / "restored"
    take_snapshot(shard, str(url), Recorder(), lambda: datetime.now(UTC))
    damage(url / "files" / sha256(shard / name))
    with capture_logs() as logs:
        restore_snapshot(str(url / shard.name), target, Recorder())
    assert name in logs[0]["reason"]
    # the manifest stays: merges then compute the states
    left = [] if name == STATES_FILE else [STATES_FILE]
    assert [each.name for each in target.glob("states*")] == left
    assert all((target / each).exists() for each in TOKEN_VECTORS.files)


def test_a_damaged_file_that_a_shard_needs_is_refused_by_a_restore(shard: Path) -> None:
    url, target = shard.parent / "snapshots", shard.parent / "restored"
    take_snapshot(shard, str(url), Recorder(), lambda: datetime.now(UTC))
    flip_bit(url / "files" / sha256(shard / "postings.npy"))
    with pytest.raises(ArtefactError, match=r"postings.npy of snapshot .* is damaged"):
        restore_snapshot(str(url / shard.name), target, Recorder())
