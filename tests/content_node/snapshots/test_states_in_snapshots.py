"""States that were computed beforehand come along with a snapshot, and are never in its way."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Recorder
from damaged_files import flip_bit
from fake_split_reader import lower
from live_shards import Fed, built
from structlog.testing import capture_logs

from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.merging.merge import merge
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.snapshots.restoring import restore_snapshot
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.content_node.states.manifest import DATA, FILES, STARTS, STATES_FILE
from winnow.content_node.states.writing import StatesWriter

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
