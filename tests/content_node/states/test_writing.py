"""States beside a shard: written, gone on with, carried on, and not taken for others."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from damaged_files import flip_bit
from fake_split_reader import LowerSession, lower
from shards_made import make, passages
from structlog.testing import capture_logs

from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.segment import Segment
from winnow.content_node.states import file, writing
from winnow.content_node.states.checking import states_fault
from winnow.content_node.states.file import open_states
from winnow.content_node.states.manifest import (
    DATA,
    STARTS,
    STATES_FILE,
    StatesManifest,
    open_states_manifest,
    read_states_manifest,
    write_states_manifest,
)
from winnow.content_node.states.reusable_states import open_reusable_states
from winnow.content_node.states.writing import StatesWriter
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.opened import OpenFile, sha256
from winnow.reading.lower_layers import LowerLayers
from winnow.reading.states_kind import StatesKind

COUNT, HOLES = 600, (3, 599)
GOLDEN = Path(__file__).parents[2] / "golden"


class CutOffError(Exception):
    """The disk, the user, the machine."""


class Interrupted(LowerSession):
    """Ends after some runs."""

    def run(self, inputs, stop=None):  # type: ignore[no-untyped-def]
        if len(self.runs) == 400:
            raise CutOffError
        return super().run(inputs, stop)


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    make(tmp_path / "shard", passages(COUNT), holes=HOLES)
    return tmp_path / "shard"


def write(shard: Path, own: LowerLayers) -> list[tuple[int, int]]:
    """Writes, and tells how much there was to do and how much was done already."""
    told: list[tuple[int, int]] = []
    StatesWriter(shard, own).write(2, lambda *counts: told.append(counts), lambda _: None)
    return told


def expect_all(shard: Path, own: LowerLayers) -> None:
    segment = open_shard(shard, ef=64, lower_layers_fingerprint=own.fingerprint)
    assert segment.states is not None
    for row in set(range(COUNT)) - set(HOLES):
        stored = segment.load(row)
        computed = own.passage_states(stored)
        assert stored.states is not None
        assert np.array_equal(stored.states.levels, computed.levels)
        assert np.array_equal(stored.states.scales, computed.scales)
    assert segment.states.load(HOLES[0]) is None


def test_every_passage_has_the_states_that_would_be_computed(shard: Path) -> None:
    assert write(shard, lower()) == [(COUNT - len(HOLES), 0)]
    expect_all(shard, lower())


def test_without_states_a_passage_is_read_as_before(shard: Path) -> None:
    segment: Segment = open_shard(shard, ef=64, lower_layers_fingerprint="f" * 16)
    assert segment.load(0).states is None


def test_finished_states_are_not_computed_again(shard: Path) -> None:
    write(shard, lower())
    session = LowerSession()
    assert write(shard, lower(session)) == [(COUNT - len(HOLES),) * 2]
    assert not session.runs
    assert not list(shard.glob("*.partial"))


@pytest.mark.parametrize("cut", [0, 1, 1000])
def test_an_interrupted_call_is_gone_on_with(shard: Path, cut: int) -> None:
    with pytest.raises(CutOffError):
        write(shard, lower(Interrupted()))
    assert not (shard / STATES_FILE).exists()
    (partial,) = shard.glob("states-*.partial")
    size = partial.stat().st_size
    with partial.open("rb+") as opened:  # what the disk had not got yet
        opened.truncate(size - cut)
    ((total, done),) = write(shard, lower())
    assert total == COUNT - len(HOLES)
    assert 0 < done < total
    expect_all(shard, lower())
    assert not list(shard.glob("*.partial"))


def test_two_at_once_are_refused(shard: Path) -> None:
    class Again(LowerSession):
        """Another process, while the first one computes."""

        def run(self, inputs, stop=None):  # type: ignore[no-untyped-def]
            if not self.runs:
                with pytest.raises(UnavailableError, match="another process is computing"):
                    write(shard, lower())
            return super().run(inputs, stop)

    StatesWriter(shard, lower(Again())).write(1, lambda *_: None, lambda _: None)
    expect_all(shard, lower())
    assert not list(shard.glob("*.partial"))


def test_two_at_once_are_refused_also_with_two_readers(shard: Path) -> None:
    """Or the manifest of one would name the states of the other."""

    class Again(LowerSession):
        def run(self, inputs, stop=None):  # type: ignore[no-untyped-def]
            if not self.runs:
                with pytest.raises(UnavailableError, match="another process is computing"):
                    write(shard, lower(fingerprint="0" * 16))
            return super().run(inputs, stop)

    StatesWriter(shard, lower(Again())).write(1, lambda *_: None, lambda _: None)
    expect_all(shard, lower())


def test_states_lost_in_a_power_loss_are_computed_again(shard: Path) -> None:
    """The file has its length, and zeros where nothing was written yet."""
    with pytest.raises(CutOffError):
        write(shard, lower(Interrupted()))
    (partial,) = shard.glob("states-*.partial")
    with partial.open("rb+") as opened:
        opened.seek(partial.stat().st_size // 2)
        opened.write(bytes(64))
    ((_, done),) = write(shard, lower())
    assert 0 < done < 256
    expect_all(shard, lower())


def test_without_room_for_the_manifest_nothing_is_lost(
    shard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(writing, "write_states_manifest", full)
        with pytest.raises(OSError, match="No space"):
            write(shard, lower())
    assert write(shard, lower()) == [(COUNT - len(HOLES),) * 2]
    expect_all(shard, lower())


def test_a_reader_whose_states_are_of_another_width_is_refused(shard: Path) -> None:
    class Narrow(LowerSession):
        def run(self, inputs, stop=None):  # type: ignore[no-untyped-def]
            return [super().run(inputs, stop)[0][..., :-1]]

    with pytest.raises(ArtefactError, match="although the bundle's manifest says so"):
        write(shard, lower(Narrow()))
    assert not (shard / STATES_FILE).exists()


def test_a_reader_whose_states_are_not_finite_is_refused(shard: Path) -> None:
    class Broken(LowerSession):
        def run(self, inputs, stop=None):  # type: ignore[no-untyped-def]
            states = super().run(inputs, stop)[0]
            states[0, 1, 2] = np.nan
            return [states]

    with pytest.raises(ArtefactError, match="passage p0 that are not finite numbers"):
        write(shard, lower(Broken()))
    assert not (shard / STATES_FILE).exists()


def test_states_of_another_reader_are_not_used_and_replaced(shard: Path) -> None:
    write(shard, lower(fingerprint="0" * 16))
    generation = read_shard_manifest(shard).generation
    with capture_logs() as logs:
        assert open_states(shard, generation, "f" * 16) is None
    assert "another reader" in logs[0]["reason"]
    assert write(shard, lower())[0][1] == 0
    expect_all(shard, lower())


def test_states_of_another_reader_stay_until_they_are_replaced(
    shard: Path,
) -> None:
    other = lower(fingerprint="0" * 16)
    write(shard, other)
    with pytest.raises(CutOffError):
        write(shard, lower(Interrupted()))
    expect_all(shard, other)
    write(shard, other)  # and what was begun is still there afterwards
    ((_, done),) = write(shard, lower())
    assert done > 0
    expect_all(shard, lower())
    assert not list(shard.glob("*.partial"))


def test_states_of_another_reader_serve_on_where_the_new_ones_cannot_be_put_in_their_place(
    shard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_array: object, _path: Path) -> None:
        raise OSError(28, "No space left on device")

    other = lower(fingerprint="0" * 16)
    write(shard, other)
    with monkeypatch.context() as patch:
        patch.setattr(writing, "save_array", full)
        with pytest.raises(OSError, match="No space left"):
            write(shard, lower())
    expect_all(shard, other)
    ((total, done),) = write(shard, lower())
    assert done == total
    expect_all(shard, lower())
    assert not list(shard.glob("*.partial*"))


def test_states_replaced_by_another_reader_while_opening_are_not_used(
    shard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sizes are the same."""
    write(shard, lower())
    open_manifest = open_states_manifest

    def meanwhile(directory: Path, kind: StatesKind) -> tuple[StatesManifest, OpenFile]:
        found = open_manifest(directory, kind)
        write(shard, lower(fingerprint="0" * 16))
        return found

    monkeypatch.setattr(file, "open_states_manifest", meanwhile)
    assert open_shard(shard, ef=64, lower_layers_fingerprint="f" * 16).states is None


def test_states_of_another_generation_are_not_used(shard: Path) -> None:
    write(shard, lower())
    with capture_logs() as logs:
        assert open_states(shard, "1" * 16, "f" * 16) is None
    assert "another generation" in logs[0]["reason"]


def test_states_of_another_version_are_not_used_and_are_replaced(shard: Path) -> None:
    write(shard, lower())
    other = read_states_manifest(shard).model_copy(update={"format": 1})
    write_states_manifest(shard, other)
    with capture_logs() as logs:
        assert open_shard(shard, ef=64, lower_layers_fingerprint="f" * 16).states is None
    assert "has format 1, this version reads 2 and 3" in logs[0]["reason"]
    write(shard, lower())
    expect_all(shard, lower())


def test_altered_starts_are_noticed(shard: Path) -> None:
    """One passage would get the states of another one."""
    write(shard, lower())
    starts = np.load(shard / STARTS)
    starts[1] -= 1
    np.save(shard / STARTS, starts)
    with capture_logs() as logs:
        assert open_shard(shard, ef=64, lower_layers_fingerprint="f" * 16).states is None
    assert "is damaged" in logs[0]["reason"]
    write(shard, lower())
    expect_all(shard, lower())


@pytest.mark.parametrize("start", [1, 2**63, 2**64 - 1])
def test_wrong_starts_are_not_used_even_with_a_matching_checksum(shard: Path, start: int) -> None:
    write(shard, lower())
    starts = np.load(shard / STARTS)
    starts[0 if start == 1 else 7] = start
    np.save(shard / STARTS, starts)
    manifest = read_states_manifest(shard)
    forged = manifest.model_copy(update={"starts_sha256": sha256(shard / STARTS)})
    write_states_manifest(shard, forged)
    with capture_logs() as logs:
        assert open_shard(shard, ef=64, lower_layers_fingerprint="f" * 16).states is None
    assert "does not match" in logs[0]["reason"]


@pytest.mark.parametrize("name", [STATES_FILE, DATA, STARTS])
def test_files_that_are_cut_short_are_not_used(shard: Path, name: str) -> None:
    write(shard, lower())
    (shard / name).write_bytes((shard / name).read_bytes()[:-1])
    with capture_logs() as logs:
        segment = open_shard(shard, ef=64, lower_layers_fingerprint="f" * 16)
    assert segment.states is None
    assert "winnow index states" in logs[0]["event"]
    write(shard, lower())
    expect_all(shard, lower())


def test_a_damaged_passage_is_computed_and_the_others_are_not(shard: Path) -> None:
    write(shard, lower())
    flip_bit(shard / DATA, 5)
    segment = open_shard(shard, ef=64, lower_layers_fingerprint="f" * 16)
    with capture_logs() as logs:
        assert segment.load(0).states is None
        assert segment.load(0).states is None
    (told,) = logs  # however often it is read
    assert "damaged" in told["event"]
    assert segment.load(1).states is not None
    session = LowerSession()
    write(shard, lower(session))  # a call finds the damage and mends it
    assert len(session.runs) == 1
    expect_all(shard, lower())


def test_a_file_of_damaged_passages_does_not_fill_the_log(shard: Path) -> None:
    write(shard, lower())
    (shard / DATA).write_bytes(bytes((shard / DATA).stat().st_size))
    segment = open_shard(shard, ef=64, lower_layers_fingerprint="f" * 16)
    with capture_logs() as logs:
        assert all(segment.load(row).states is None for row in range(4, 200))
    assert len(logs) == 20


def test_states_of_another_generation_are_copied(shard: Path, tmp_path: Path) -> None:
    write(shard, lower())
    make(tmp_path / "next", passages(COUNT), holes=(0,), sequence=0)
    known = open_reusable_states([shard], "f" * 16)
    session = LowerSession()
    writer = StatesWriter(tmp_path / "next", lower(session), known)
    writer.write(2, lambda *_: None, lambda _: None)
    assert len(session.runs) == len(HOLES)  # what the other one has not
    for name in (3, 17, 599):
        segment = open_shard(tmp_path / "next", ef=64, lower_layers_fingerprint="f" * 16)
        stored = segment.load(name)
        assert stored.states is not None
        assert np.array_equal(stored.states.levels, lower().passage_states(stored).levels)


def test_states_of_8_bits_serve_as_those_of_4_bits(tmp_path: Path) -> None:
    """A shard of an older version gives the scores of new ones, bit for bit."""
    old, new = (golden_states(tmp_path, number) for number in (2, 3))
    segment = open_shard(old, ef=64, lower_layers_fingerprint="f" * 16)
    wanted = open_shard(new, ef=64, lower_layers_fingerprint="f" * 16)
    assert states_fault(old) == states_fault(new) == ""
    for row in range(3):
        found, own = segment.load(row).states, wanted.load(row).states
        assert found is not None
        assert own is not None
        assert np.array_equal(found.levels, own.levels)
        assert np.array_equal(found.scales, own.scales)


def test_states_of_8_bits_are_converted_without_the_reader(tmp_path: Path) -> None:
    """By `winnow index states`, and by a merge, which copies them."""
    old, new = (golden_states(tmp_path, number) for number in (2, 3))
    known = open_reusable_states([old], "f" * 16)
    merged = Path(shutil.copytree(GOLDEN / "shard-format-3", tmp_path / "merged"))
    session = LowerSession()
    StatesWriter(merged, lower(session), known).write(1, lambda *_: None, lambda _: None)
    assert write(old, lower(session)) == [(3, 0)]
    assert not session.runs
    for shard in (old, merged):
        for name in (STATES_FILE, DATA, STARTS):
            assert (shard / name).read_bytes() == (new / name).read_bytes()


def test_an_interrupted_call_of_an_older_version_begins_again(tmp_path: Path) -> None:
    """Its unfinished file has the same name, and states of 8 bits."""
    old = golden_states(tmp_path, 2)
    generation = read_shard_manifest(old).generation
    (old / STATES_FILE).unlink()
    (old / DATA).rename(old / f"states-{'f' * 16}-{generation}.partial")
    assert write(old, lower()) == [(3, 0)]
    assert states_fault(old) == ""
    assert (old / DATA).read_bytes() == (GOLDEN / "states-format-3" / DATA).read_bytes()


def golden_states(parent: Path, number: int) -> Path:
    """Returns a shard with golden states of a format, made by `tests/golden/make_states.py`."""
    shard = Path(shutil.copytree(GOLDEN / "shard-format-3", parent / f"states-{number}"))
    shutil.copytree(GOLDEN / f"states-format-{number}", shard, dirs_exist_ok=True)
    return shard
