"""Which generation a node starts from, and what becomes of damage."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from damaged_files import flip_bit
from live_shards import Fed, built
from structlog.testing import capture_logs

from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.names import damaged_path, generation_path
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.merging.tidying import merge_lock, remove_obsolete
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.errors import ArtefactError, IdentityError

TEXTS = {f"built {n}": f"text number {n} of {n % 7}" for n in range(20)}
DERIVED = {
    "graph.hnsw", "tokens.npy", "ends.npy", "frequencies.npy", "postings.npy", "starts.npy",
    "counts.npy",
}  # fmt: skip
PLACES = 25
"""Bytes that are altered in each file."""


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Fed:
    """A shard with two generations, and a log that was not trimmed."""
    fed = Fed(built(tmp_path_factory.mktemp("shard"), TEXTS), TEXTS)
    fed.apply([("new 0", "one"), ("new 1", "two"), ("built 3", None)])
    first = merge(fed.shard, fed.shard, 3)
    fed.apply([("new 0", "three"), ("new 2", "four")])
    merge(Path(first.directory), fed.shard, 5)
    fed.log.close()
    return fed


@pytest.fixture
def shard(fed: Fed, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fed.shard, tmp_path / "shard"))


def open_base(directory: Path) -> StoredSegment:
    return open_shard(directory, ef=64, exact_up_to=0)


def opened(shard: Path, feeding: bool = True, trimmed: int = 5) -> StoredSegment:
    return open_newest(shard, trimmed, open_base, feeding=feeding)


def names(shard: Path) -> list[str]:
    return sorted(path.name for path in (shard / "live").glob("generation-*"))


def newest(shard: Path) -> Path:
    return generation_path(shard, 5)


def texts(segment: StoredSegment) -> dict[str, str]:
    rows = segment.store.row_numbers().tolist()
    return {each.passage.id: each.passage.text for each in segment.store.load(rows)}


def expected(fed: Fed) -> dict[str, str]:
    return {name: stored.text for name, stored in fed.passages.items()}


def test_what_was_built_is_served_where_nothing_was_merged(tmp_path: Path) -> None:
    shard = built(tmp_path, TEXTS)
    assert opened(shard).manifest.sequence == 0
    assert not (shard / "live").exists()


def test_the_newest_generation_is_served(shard: Path, fed: Fed) -> None:
    assert texts(opened(shard)) == expected(fed)


def test_what_an_interrupted_merge_left_is_removed_unless_it_still_runs(shard: Path) -> None:
    partial = shard / "live" / "generation-00000000000000000009.partial"
    partial.mkdir()
    (partial / "passages.sqlite").write_bytes(b"half")
    with merge_lock(shard):
        opened(shard)
    assert partial.exists()
    opened(shard, feeding=False)
    assert partial.exists()
    opened(shard)
    assert not partial.exists()


def test_older_generations_are_removed_when_the_newest_is_served(shard: Path) -> None:
    segment = opened(shard)
    remove_obsolete(shard, 5)
    assert names(shard) == [newest(shard).name]
    assert open_base(shard).manifest.sequence == 0
    segment.load(0)


def test_what_is_open_is_served_on_when_its_generation_is_removed(shard: Path, fed: Fed) -> None:
    old = open_base(generation_path(shard, 3))
    remove_obsolete(shard, 5)
    assert old.store.load([20])[0].passage.text == "one"
    assert old.nearest(np.ones(8, np.float32), 3)


def sampled() -> list[tuple[str, float]]:
    rng = np.random.default_rng(3)
    files = [*sorted(DERIVED), "passages.sqlite", "manifest.json"]
    return [(name, float(place)) for name in files for place in rng.random(PLACES)]


@pytest.mark.graph
def test_a_flipped_byte_is_refused_by_name_or_repaired_and_said_so(shard: Path, fed: Fed) -> None:
    """225 places in all: every file of a generation, its manifest included."""
    directory, good = newest(shard), expected(fed)
    kept = shutil.copytree(directory, shard.parent / "kept")
    asked = open_base(directory).nearest(np.ones(8, np.float32), 5)
    for name, place in sampled():
        flip_bit(directory / name, int(place * (directory / name).stat().st_size))
        with capture_logs() as said:
            if name in DERIVED:
                segment = opened(shard)
                assert texts(segment) == good
                assert segment.nearest(np.ones(8, np.float32), 5) == asked
                (line,) = said
                assert name in line["files"]
                assert "rebuilt from its database" in line["event"]
                assert not opened(shard, feeding=False).file_change()
            else:
                with pytest.raises(ArtefactError, match=name):
                    opened(shard)
        shutil.rmtree(directory)
        shutil.copytree(kept, directory)


@pytest.mark.graph
def test_nothing_is_repaired_by_a_node_that_takes_no_writes(shard: Path) -> None:
    flip_bit(newest(shard) / "graph.hnsw", 100)
    with pytest.raises(ArtefactError, match=r"graph\.hnsw"):
        opened(shard, feeding=False)


@pytest.mark.graph
def test_a_missing_file_is_repaired_like_a_damaged_one(shard: Path, fed: Fed) -> None:
    for name in DERIVED:
        (newest(shard) / name).unlink()
    assert texts(opened(shard)) == expected(fed)


def test_counts_of_the_index_are_refused_by_name_where_nobody_has_them_any_more(
    shard: Path,
) -> None:
    for directory in (shard, newest(shard)):
        flip_bit(directory / "frequencies.npy", -1)
    with pytest.raises(ArtefactError, match=r"frequencies\.npy"):
        opened(shard)


@pytest.mark.parametrize("name", ["passages.sqlite", "manifest.json"])
def test_the_generation_before_is_served_where_the_log_goes_on_after_it(
    shard: Path, name: str
) -> None:
    flip_bit(newest(shard) / name, 30)
    with capture_logs() as said:
        assert opened(shard, trimmed=3).manifest.sequence == 3
    assert name in said[0]["reason"]
    assert names(shard)[-1] == damaged_path(newest(shard)).name
    remove_obsolete(shard, 5)
    assert names(shard) == []


@pytest.mark.parametrize("name", ["passages.sqlite", "manifest.json"])
def test_a_damaged_generation_whose_writes_are_gone_is_refused_by_name(
    shard: Path, name: str
) -> None:
    flip_bit(newest(shard) / name, 30)
    before = names(shard)
    with pytest.raises(ArtefactError, match=name):
        opened(shard, feeding=False, trimmed=0)
    with pytest.raises(ArtefactError, match=rf"{name}.*restore the shard"):
        opened(shard, trimmed=4)
    (shard / "live" / "writes.sqlite").unlink()
    with pytest.raises(ArtefactError, match=rf"{name}.*restore the shard"):
        opened(shard, trimmed=0)
    assert names(shard) == before


def test_a_generation_of_another_shard_is_refused(shard: Path) -> None:
    newest(shard).rename(generation_path(shard, 7))
    with pytest.raises(IdentityError, match="up to write 5"):
        opened(shard)


def test_damage_of_what_was_built_is_not_taken_for_damage_of_a_generation(shard: Path) -> None:
    flip_bit(shard / "manifest.json", 30)
    with pytest.raises(ArtefactError, match=r"manifest\.json"):
        opened(shard)
    assert len(names(shard)) == 2


def test_a_good_generation_that_cannot_be_opened_now_stays_where_it_is(shard: Path) -> None:
    def without_memory(_: Path) -> StoredSegment:
        raise ArtefactError("it cannot be loaded: MemoryError()")

    with pytest.raises(ArtefactError, match="MemoryError"):
        open_newest(shard, 0, without_memory, feeding=True)
    assert len(names(shard)) == 2
