"""The next generation holds exactly what base and log say, as a plain dictionary does."""

import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from damaged_files import flip_bit
from fake_split_reader import lower
from hypothesis import given, settings
from hypothesis import strategies as st
from live_shards import Fed, built
from live_writes import DIMENSION
from whole_bundle import WHOLE

from winnow.content_node.live.reading import log_path
from winnow.content_node.merging.__main__ import run
from winnow.content_node.merging.child_process import MergeChild
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.names import damaged_path, generation_path, partial_path
from winnow.content_node.merging.process import print_result
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.tidying import merge_lock
from winnow.content_node.shard import StoredSegment, hnsw, open_shard
from winnow.content_node.shard.nearest import GraphIndex
from winnow.content_node.states.writing import StatesWriter
from winnow.domain.tenant import stored_id, tenant_of
from winnow.errors import ArtefactError, UnavailableError, WinnowError
from winnow.faultpoints import VARIABLE
from winnow.packaged import default_bundle

TEXTS = {f"built {n}": f"text number {n} of {n % 7}" for n in range(30)}
IDS = [*list(TEXTS)[:6], *(f"new {n}" for n in range(6))]


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    return Fed(built(tmp_path, TEXTS), TEXTS)


def merged(fed: Fed, base: Path | None = None) -> Merged:
    return merge(base or fed.shard, fed.shard, fed.log.last)


def opened(done: Merged) -> StoredSegment:
    return open_shard(Path(done.directory), ef=64, exact_up_to=0)


def expect_same(segment: StoredSegment, fed: Fed) -> None:
    """Asserts that a generation holds what the dictionary holds, and finds it."""
    store = segment.store
    rows = store.row_numbers().tolist()
    assert segment.manifest.passages == len(rows) == len(fed.passages)
    found = {name: row for (name, _), row in zip(store.ids_and_sequences(rows), rows, strict=True)}
    assert set(found) == set(fed.passages)
    for identifier, stored in fed.passages.items():
        entry = store.locate(identifier)
        assert entry is not None
        assert (entry.sequence, entry.version) == (stored.sequence, stored.version)
        assert segment.load(entry.row).passage.text == stored.text
        assert store.deletion_version(identifier) is None
    for identifier, version in fed.tombstones.items():
        assert store.deletion_version(identifier) == version
    rng = np.random.default_rng(7)
    for vector in rng.standard_normal((8, DIMENSION)).astype(np.float32):
        near = [row for row, _ in segment.nearest(vector, 5)]
        # equal texts are equally near
        texts = [fed.passages[name].text for name, _ in store.ids_and_sequences(near)]
        assert texts == [fed.passages[name].text for name in fed.nearest(vector, 5)]


def test_a_generation_has_the_rows_that_the_node_gave_its_puts(fed: Fed) -> None:
    fed.apply([("new 0", "one"), ("new 1", "two"), ("new 0", "three"), ("built 3", None)])
    done = merged(fed)
    assert (done.sequence, done.rows, done.passages) == (4, 33, 31)
    segment = opened(done)
    assert (segment.manifest.sequence, segment.manifest.log_id) == (4, fed.log.log_id)
    rows = {name: entry.row for name in ("built 0", "built 29", "new 1", "new 0")
            if (entry := segment.store.locate(name))}  # fmt: skip
    assert rows == {"built 0": 0, "built 29": 29, "new 1": 31, "new 0": 32}
    assert segment.store.locate("built 3") is None
    expect_same(segment, fed)


@pytest.mark.graph
@pytest.mark.parametrize("deleted", [1, 8], ids=["some holes", "too many holes"])
def test_a_merge_needs_no_hnswlib_and_adds_the_graph_once_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted: int
) -> None:
    """The built shard has a graph, the first generation has none, the second has one."""
    fed = Fed(built(tmp_path, TEXTS), TEXTS)
    fed.apply([(f"built {n}", None) for n in range(deleted)] + [("new 0", "one")])
    with monkeypatch.context() as patched:
        patched.setattr(hnsw, "module", None)
        first = merged(fed)
        segment = opened(first)
        assert (segment.manifest.graph, segment.manifest.vectors) == (None, "vectors.npy")
        expect_same(segment, fed)
    fed.apply([("new 1", "two"), ("built 9", None)])
    segment = opened(merged(fed, Path(first.directory)))
    assert isinstance(segment.index, GraphIndex)
    expect_same(segment, fed)


def test_rows_are_numbered_again_when_too_many_are_holes(fed: Fed) -> None:
    fed.apply([(f"built {n}", None) for n in range(8)] + [("built 9", "another")])
    done = merged(fed)
    assert (done.rows, done.passages) == (22, 22)
    segment = opened(done)
    entry = segment.store.locate("built 9")
    assert entry is not None
    assert entry.row == 21
    expect_same(segment, fed)


def test_rows_of_a_tenant_are_next_to_each_other_once_rows_are_numbered_again(
    tmp_path: Path,
) -> None:
    """So they are in a built shard, and a merge that renumbers its rows restores it."""
    texts = {stored_id("abc"[n % 3], f"p{n}"): f"text {n}" for n in range(30)}
    fed = Fed(built(tmp_path, texts, tenants=True), texts)

    def tenants(segment: StoredSegment) -> str:
        rows = segment.store.row_numbers().tolist()
        return "".join(tenant_of(name) for name, _ in segment.ids_and_sequences(rows))

    assert tenants(open_shard(fed.shard, ef=64)) == "a" * 10 + "b" * 10 + "c" * 10
    fed.apply([(stored_id(each, "new"), f"one more of {each}") for each in "cba"])
    first = opened(merged(fed))
    assert tenants(first) == "a" * 10 + "b" * 10 + "c" * 10 + "cba"
    fed.apply([(each, None) for each in list(texts)[:9]])
    done = merged(fed, Path(first.files[0].path).parent)
    assert tenants(opened(done)) == "a" * 8 + "b" * 8 + "c" * 8
    expect_same(opened(done), fed)


def test_everything_may_be_deleted(fed: Fed) -> None:
    fed.apply([(name, None) for name in TEXTS])
    done = merged(fed)
    assert (done.rows, done.passages) == (0, 0)
    fed.put("first", "again")
    expect_same(opened(merged(fed, Path(done.directory))), fed)


@settings(max_examples=10)
@given(st.data())
def test_after_any_history_a_generation_holds_what_a_dictionary_holds(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    fed = Fed(built(tmp_path_factory.mktemp("shard"), TEXTS), TEXTS)
    base = fed.shard
    write = st.tuples(
        st.sampled_from(IDS),
        st.none() | st.integers(0, 40).map("text {}".format),
        st.none() | st.integers(0, 5),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        for identifier, text, version in data.draw(st.lists(write, min_size=1, max_size=12)):
            if text is not None:
                fed.put(identifier, text, version)
            elif identifier in fed.passages or version is not None:
                fed.delete(identifier, version)
        if fed.log.last == 0 or generation_path(fed.shard, fed.log.last) == base:
            continue
        done = merged(fed, base)
        expect_same(opened(done), fed)
        base = Path(done.directory)
        if data.draw(st.booleans()):
            fed.log.trim(done.sequence)
    fed.log.close()


def test_a_version_that_was_deleted_is_remembered_over_merges(fed: Fed) -> None:
    fed.put("a", "first", 3)
    fed.delete("a", 5)
    fed.delete("never there", 8)
    first = merged(fed)
    assert opened(first).store.deletion_version("a") == 5
    fed.put("b", "other")
    second = merged(fed, Path(first.directory))
    assert opened(second).store.deletion_version("never there") == 8
    fed.put("a", "second", 6)
    expect_same(opened(merged(fed, Path(second.directory))), fed)


def test_metadata_is_merged_and_filters_find_it(fed: Fed) -> None:
    fed.put("old", "text", metadata='{"year": 1999}')
    fed.put("new", "other text", metadata='{"year": 2015, "lang": ["en", "de"]}')
    fed.put("none", "no metadata")
    first = opened(merged(fed))
    assert first.matching_rows("year >= 2010").nonzero()[0].tolist() == [31]
    assert first.load(31).passage.metadata == '{"year": 2015, "lang": ["en", "de"]}'
    assert first.load(32).passage.metadata == ""
    fed.put("new", "other text", metadata='{"year": 2001}')
    second = opened(merged(fed, first.files[0].path.parent))
    assert not second.matching_rows("year >= 2010").any()
    assert second.matching_rows("year >= 1990").nonzero()[0].tolist() == [30, 33]
    assert second.field_names == ("year",)


def test_an_interrupted_merge_is_repeated_and_a_complete_one_is_reused(
    fed: Fed,
) -> None:
    fed.put("a", "text")
    partial = partial_path(generation_path(fed.shard, 1))
    partial.mkdir()
    (partial / "passages.sqlite").write_bytes(b"half")
    done = merged(fed)
    assert not partial.exists()
    written = {path.name: path.stat().st_ino for path in Path(done.directory).iterdir()}
    assert merged(fed) == done
    assert {path.name: path.stat().st_ino for path in Path(done.directory).iterdir()} == written


def test_merges_that_are_killed_leave_nothing_to_the_next_one(
    fed: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory runs out the system kills each: their databases would fill the disk."""
    fed.put("a", "text")
    with monkeypatch.context() as killed:
        killed.setenv(VARIABLE, "merge.words")
        with pytest.raises(WinnowError, match="exit code -9"):
            MergeChild(base=fed.shard, shard=fed.shard, upto=1).run()
    left = partial_path(generation_path(fed.shard, 1))
    assert left.exists()
    fed.put("b", "text")
    merged(fed)
    assert not left.exists()


def test_a_generation_that_is_there_and_damaged_is_put_aside_and_made_again(fed: Fed) -> None:
    fed.put("a", "text")
    done = merged(fed)
    path = Path(done.directory) / "passages.sqlite"
    flip_bit(path, 5_000)
    data = path.read_bytes()
    assert merged(fed) == done
    expect_same(opened(done), fed)
    assert (damaged_path(Path(done.directory)) / "passages.sqlite").read_bytes() == data


def test_damage_is_not_merged(fed: Fed) -> None:
    fed.put("a", "text")
    path = fed.shard / "passages.sqlite"
    good = path.read_bytes()
    flip_bit(path, -5_000)
    with pytest.raises(ArtefactError, match=r"passages\.sqlite is damaged"):
        merged(fed)
    path.write_bytes(good)
    fed.log.close()
    connection = sqlite3.connect(log_path(fed.shard))
    connection.execute("UPDATE writes SET text = 'other'")
    connection.commit()
    connection.close()
    with pytest.raises(ArtefactError, match="write 1 is damaged"):
        merged(fed)
    assert sorted(path.name for path in (fed.shard / "live").glob("generation-*")) == []


def test_a_base_of_another_log_is_refused(fed: Fed, tmp_path: Path) -> None:
    fed.put("a", "text")
    done = merged(fed)
    (tmp_path / "other").mkdir()
    other = Fed(built(tmp_path / "other", TEXTS), TEXTS)
    other.apply([("b", "one"), ("c", "two")])
    with pytest.raises(ArtefactError, match=f"needs the writes 2 to .* of log {fed.log.log_id}"):
        merge(Path(done.directory), other.shard, 2)


def test_one_merge_at_a_time(fed: Fed) -> None:
    fed.put("a", "text")
    with merge_lock(fed.shard), pytest.raises(UnavailableError, match="is locked"):
        merged(fed)
    merged(fed)


def test_a_child_process_merges_and_returns_the_generation(fed: Fed) -> None:
    fed.put("a", "text")
    done = MergeChild(base=fed.shard, shard=fed.shard, upto=1).run()
    expect_same(opened(done), fed)


def test_a_merge_process_has_the_highest_niceness(
    fed: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading is nice, too, and the shards of a machine are merged at the same time."""
    fed.put("a", "text")
    niceness: list[int] = []
    monkeypatch.setattr(os, "nice", niceness.append)
    assert print_result(run, [str(fed.shard), str(fed.shard), "1"]) == 0
    assert niceness == [19]


def test_a_process_that_cannot_merge_says_why(fed: Fed) -> None:
    fed.put("a", "text")
    with pytest.raises(WinnowError, match="ends at write 1"):
        MergeChild(base=fed.shard, shard=fed.shard, upto=2).run()
    shutil.rmtree(fed.shard / "live")
    with pytest.raises(WinnowError, match="generation-00000000000000000001"):
        MergeChild(base=fed.shard, shard=fed.shard, upto=1).run()


def test_a_process_that_is_ended_is_an_error(fed: Fed) -> None:
    fed.put("a", "text")
    child = MergeChild(base=fed.shard, shard=fed.shard, upto=1)
    child.stop()
    with pytest.raises(WinnowError, match="ended with exit code -9"):
        child.run()


def test_states_that_cannot_be_carried_on_are_left_out_and_reported(fed: Fed) -> None:
    """States are derived, and several times as large as all else: a disk may have no room."""
    fed.apply([("new 0", "one")])

    def carry(_: Path, made: Path) -> str:
        (made / "states-of.partial").write_text("half")
        raise OSError(28, "No space left on device")

    done = merge(fed.shard, fed.shard, fed.log.last, carry)
    assert "No space left" in done.without_states
    assert not list(Path(done.directory).glob("states*"))
    expect_same(opened(done), fed)
    again = merge(fed.shard, fed.shard, fed.log.last, carry)
    assert again.without_states == ""


def test_a_missing_bundle_prevents_no_merge(fed: Fed, tmp_path: Path) -> None:
    gone = tmp_path / "no bundle"
    fed.apply([("new 0", "one")])
    done = MergeChild(base=fed.shard, shard=fed.shard, upto=fed.log.last, bundle=gone).run()
    assert done.without_states == ""  # there are none
    StatesWriter(Path(done.directory), lower()).write(1, lambda *_: None, lambda _: None)
    fed.apply([("new 1", "two")])
    again = MergeChild(
        base=Path(done.directory), shard=fed.shard, upto=fed.log.last, bundle=gone
    ).run()
    assert "no bundle" in again.without_states
    expect_same(opened(again), fed)


@pytest.mark.parametrize("bundle", [default_bundle(), WHOLE])
def test_states_of_another_reader_are_not_dropped_without_a_word(fed: Fed, bundle: Path) -> None:
    fed.apply([("new 0", "one")])
    StatesWriter(fed.shard, lower()).write(1, lambda *_: None, lambda _: None)
    done = MergeChild(base=fed.shard, shard=fed.shard, upto=fed.log.last, bundle=bundle).run()
    assert "not of the reader of bundle minilm-l6" in done.without_states
    assert not list(Path(done.directory).glob("states*"))
