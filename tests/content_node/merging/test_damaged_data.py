"""Damage to precomputed data, or to files that hold it, costs a merge no data of other passages."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from damaged_files import flip_bit
from fake_split_reader import LowerSession, lower
from fake_token_vectors import FINGERPRINT, FakePassageTokens
from live_shards import Fed

from winnow.bundle.manifest import Manifest
from winnow.content_node.merging import states as carrying
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.states.manifest import DATA, STATES_FILE, read_states_manifest
from winnow.content_node.states.writing import StatesWriter
from winnow.errors import ArtefactError
from winnow.packaged import default_bundle
from winnow.reading.states_kind import READER_STATES, TOKEN_VECTORS, StatesKind

OF = "f" * 16


@dataclass
class Models:
    """The models of the bundle of a node."""

    session: LowerSession = field(default_factory=LowerSession)
    tokens: FakePassageTokens = field(default_factory=FakePassageTokens)

    def fingerprint_of(self, kind: StatesKind, _: Manifest) -> str:
        return OF if kind is READER_STATES else FINGERPRINT

    def open(self, kind: StatesKind, _: object) -> object:
        return lower(self.session) if kind is READER_STATES else self.tokens


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    models = Models()
    monkeypatch.setattr(carrying, "fingerprint_of", models.fingerprint_of)
    monkeypatch.setattr(carrying, "open_states_model", models.open)
    return models


def merged(fed: Fed, base: Path, bundle: Path | None = None) -> Merged:
    """Merges after one more write."""
    fed.put(f"new {fed.log.last}", "one more text")
    carry = partial(carrying.carry_states, bundle or default_bundle(), fed.shard)
    return merge(base, fed.shard, fed.log.last, carry)


def opened(directory: Path) -> StoredSegment:
    return open_shard(
        directory,
        ef=64,
        exact_up_to=0,
        lower_layers_fingerprint=OF,
        token_vectors_fingerprint=FINGERPRINT,
    )


def counts(directory: Path | str) -> tuple[int | None, int | None]:
    """The number of passages with states, and with token vectors; None where none are used."""
    segment = opened(Path(directory))
    states, tokens = segment.states, segment.token_vectors
    return (
        None if states is None else states.passages,
        None if tokens is None else tokens.passages,
    )


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (STATES_FILE, 20),
        (READER_STATES.starts_file, 200),
        (DATA, None),
        (TOKEN_VECTORS.manifest, 20),
        (TOKEN_VECTORS.data, None),
    ],
)
def test_a_merge_computes_data_whose_files_are_damaged(
    fed: Fed, name: str, place: int | None
) -> None:
    path = fed.shard / name
    if place is None:
        path.write_bytes(path.read_bytes()[:-7])
    else:
        flip_bit(path, place)
    done = merged(fed, fed.shard)
    assert done.without_states == ""
    assert counts(done.directory) == (31, 31)


def test_a_merge_copies_the_token_vectors_of_undamaged_passages(fed: Fed, models: Models) -> None:
    flip_bit(fed.shard / TOKEN_VECTORS.data, 40)
    done = merged(fed, fed.shard)
    assert models.tokens.computed == ["built 0", "new 0"]
    assert counts(done.directory) == (31, 31)


def test_a_merge_computes_no_more_damaged_states_than_missing_ones(
    fed: Fed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest passages come first."""
    monkeypatch.setattr(carrying, "MAX_COMPUTED", 5)
    path = fed.shard / DATA
    path.write_bytes(bytes(path.stat().st_size))
    done = merged(fed, fed.shard)
    assert len(models.session.runs) == 5
    assert done.without_states.startswith("26 passages have no states yet")
    generation = opened(Path(done.directory))
    assert generation.states is not None
    assert generation.states.passages == 5
    assert generation.load(30).states is not None
    for _ in range(7):
        done = merged(fed, Path(done.directory))
    assert counts(done.directory) == (38, 38)


def test_damaged_token_vectors_of_the_next_bundle_are_left_out(
    fed: Fed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node of the present bundle cannot compute them, and copies the others."""
    monkeypatch.setattr(carrying, "fingerprint_of", lambda *_: "")
    monkeypatch.setattr(carrying, "CopiedTokens", lambda *_: models.tokens)
    flip_bit(fed.shard / TOKEN_VECTORS.data, 40)
    done = merged(fed, fed.shard)
    assert "so 2 passages got none" in done.without_states
    assert models.tokens.computed == []


def test_token_vectors_of_the_next_bundle_replace_those_of_the_built_shard(fed: Fed) -> None:
    """Those of the built shard stay until a generation has all."""
    base = Path(merged(fed, fed.shard).directory)
    next_tokens = FakePassageTokens()
    next_tokens.fingerprint = "n" * 16
    StatesWriter(base, next_tokens).write(1, lambda *_: None, lambda _: None)
    done = merged(fed, base)
    assert "are not of the encoder of bundle" in done.without_states
    manifest = read_states_manifest(Path(done.directory), TOKEN_VECTORS)
    assert manifest.fingerprint == next_tokens.fingerprint


@pytest.mark.parametrize("name", ["passages.sqlite", "manifest.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(bytes(9_000))])
def test_a_damaged_built_shard_costs_a_generation_no_data(
    fed: Fed, name: str, damage: Callable[[Path], object]
) -> None:
    base = Path(merged(fed, fed.shard).directory)
    damage(fed.shard / name)
    done = merged(fed, base)
    assert done.without_states == ""
    assert counts(done.directory) == (32, 32)


def test_a_repaired_generation_keeps_its_data(fed: Fed) -> None:
    """Its graph is another one after the repair, and so is its id."""
    fed.put("built 3", "another text")
    generation = Path(merged(fed, fed.shard).directory)
    before = opened(generation).generation
    flip_bit(generation / "graph.hnsw", 99)
    repaired = open_newest(fed.shard, fed.log.last, opened, feeding=True)
    assert repaired.generation != before
    assert counts(generation) == (31, 31)


def test_a_merge_that_could_not_carry_data_leaves_it_to_the_next_one(
    fed: Fed, tmp_path: Path
) -> None:
    """Its bundle was replaced just then, for example."""
    failed = merged(fed, fed.shard, tmp_path / "no bundle")
    assert failed.without_states.count("no bundle") == 2
    assert counts(failed.directory) == (0, None)
    for kind in (READER_STATES, TOKEN_VECTORS):
        for name in kind.files:
            (fed.shard / name).unlink()
    done = merged(fed, Path(failed.directory))
    assert done.without_states == ""
    assert counts(done.directory) == (32, 32)


def test_a_model_that_fails_in_the_middle_leaves_no_unfinished_files(
    fed: Fed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ArtefactError("out of order")

    monkeypatch.setattr(models.session, "run", fail)
    done = merged(fed, fed.shard)
    assert done.without_states.startswith("out of order; ")
    assert counts(done.directory) == (0, 31)
    assert not list(Path(done.directory).glob("*.partial*"))


def test_states_for_which_there_is_no_room_are_not_begun(
    fed: Fed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise they would fill the disk for a while, and writes would be refused."""

    class Disk:
        free = (fed.shard / DATA).stat().st_size

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk)
    done = merged(fed, fed.shard)
    assert "there is no room" in done.without_states
    assert models.session.runs == []
    assert counts(done.directory)[0] == 0
