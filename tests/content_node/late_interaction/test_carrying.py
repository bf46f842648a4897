"""Token vectors are carried by merges and snapshots, beside the states of the reader."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from damaged_files import flip_bit
from fake_split_reader import lower
from fake_token_vectors import FINGERPRINT, FakePassageTokens
from live_shards import Fed
from numpy.typing import NDArray
from small_disks import limited_files

from winnow.bundle import load_bundle
from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.merging.child_process import MergeChild
from winnow.content_node.merging.handed_tokens import HandedTokens, write_tokens
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.states import carry_states, write_carried_states
from winnow.content_node.merging.tidying import remove_obsolete
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.snapshots.restoring import restore_snapshot
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.content_node.states.checking import states_fault
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import read_states_manifest
from winnow.content_node.states.reusable_states import open_reusable_states
from winnow.content_node.states.writing import StatesWriter
from winnow.errors import ArtefactError
from winnow.packaged import default_bundle
from winnow.reading.states_kind import READER_STATES, TOKEN_VECTORS, with_checksum
from winnow.reading.stored_passage import StoredPassage


class NoProgress:
    """Shows nothing."""

    def start(self, *_: object) -> None: ...

    def advance(self, *_: object) -> None: ...


def opened(directory: Path) -> StoredSegment:
    return open_shard(
        directory,
        ef=64,
        lower_layers_fingerprint="f" * 16,
        token_vectors_fingerprint=FINGERPRINT,
    )


def merged(fed: Fed, base: Path, room: int | None = None) -> tuple[Merged, list[str]]:
    """A merge, and the passages whose token vectors it computed."""
    model = FakePassageTokens()

    def carry(before: Path, made: Path) -> str:
        known = open_reusable_states([before], FINGERPRINT, TOKEN_VECTORS)
        assert known
        if room is None:
            return write_carried_states(made, model, known, 1_000)
        with limited_files(room):
            return write_carried_states(made, model, known, 1_000)

    done = merge(base, fed.shard, fed.log.last, carry)
    return done, model.computed


def test_a_merge_copies_token_vectors_and_computes_those_of_new_passages(fed: Fed) -> None:
    fed.apply([("new", "one more text"), ("built 3", None)])
    done, computed = merged(fed, fed.shard)
    assert (done.without_states, computed) == ("", ["new"])
    before, after = opened(fed.shard), opened(Path(done.directory))
    assert before.token_vectors is not None
    assert after.token_vectors is not None
    assert after.token_vectors.passages == len(fed.passages)
    for row in range(5, 30):
        assert after.token_vectors.packed(row) == before.token_vectors.packed(row)
    assert states_fault(Path(done.directory), TOKEN_VECTORS) == ""


class DefaultTokens(FakePassageTokens):
    """Token vectors of the default bundle, which are wrong but distinct."""

    width = 32

    def __init__(self) -> None:
        super().__init__()
        self.fingerprint = load_bundle(default_bundle()).manifest.token_vectors_fingerprint

    def count_tokens(self, stored: StoredPassage) -> int:
        return super().count_tokens(stored) + 2

    def levels(self, stored: StoredPassage) -> NDArray[np.int8]:
        return np.full((self.count_tokens(stored), self.width), 3, np.int8)


def flip_handed(offset: int, file: IO[bytes]) -> None:
    """Hands over token vectors, and then flips a bit of the file."""
    levels = np.full((2 + 3 + 3, 32), 7, np.int8)
    write_tokens(file, DefaultTokens().fingerprint, [("new", 1, levels)])
    place = offset % os.fstat(file.fileno()).st_size
    (byte,) = os.pread(file.fileno(), 1, place)
    os.pwrite(file.fileno(), bytes([byte ^ 1]), place)


def refuse(_: IO[bytes]) -> None:
    """Fails as the reading of a changed file of the base does."""
    raise ArtefactError("passages.sqlite was changed")


@pytest.mark.bundle
def test_the_process_of_a_merge_stores_the_token_vectors_that_the_node_has(fed: Fed) -> None:
    """It need not run the encoder for them."""
    model = DefaultTokens()
    StatesWriter(fed.shard, model).write(1, lambda *_: None, lambda _: None)
    fed.apply([("new", "one more text")])
    levels = np.full((2 + 3 + 3, 32), 7, np.int8)

    def hand_over(file: IO[bytes]) -> None:
        write_tokens(file, model.fingerprint, [("new", 1, levels), ("old", 1, levels)])

    bundle, last = default_bundle(), fed.log.last
    child = MergeChild(
        base=fed.shard, shard=fed.shard, upto=last, bundle=bundle, write_tokens=hand_over
    )
    generation = Path(child.run().directory)
    manifest = read_states_manifest(generation, TOKEN_VECTORS)
    file = StateFile.open_beside(generation, manifest, TOKEN_VECTORS)
    assert file.packed(30) == with_checksum(levels.tobytes())
    assert states_fault(generation, TOKEN_VECTORS) == ""


@pytest.mark.bundle
@pytest.mark.parametrize(
    "write", [partial(flip_handed, 0), partial(flip_handed, 20), partial(flip_handed, -2), refuse]
)
def test_handed_token_vectors_that_cannot_be_read_do_not_stop_a_merge(
    fed: Fed, write: Callable[[IO[bytes]], None]
) -> None:
    """The merge computes them."""
    StatesWriter(fed.shard, DefaultTokens()).write(1, lambda *_: None, lambda _: None)
    fed.put("new", "one more text")
    last = fed.log.last
    child = MergeChild(
        base=fed.shard, shard=fed.shard, upto=last, bundle=default_bundle(), write_tokens=write
    )
    merged = child.run()
    assert merged.sequence == last
    manifest = read_states_manifest(Path(merged.directory), TOKEN_VECTORS)
    assert StateFile.open_beside(Path(merged.directory), manifest, TOKEN_VECTORS).passages == 31


@pytest.mark.bundle
def test_a_full_disk_that_takes_no_handed_token_vectors_does_not_stop_a_merge(fed: Fed) -> None:
    """What could not be written stays in a buffer, and is written again when the file is closed."""
    fed.put("new", "one more text")

    def fill_disk(file: IO[bytes]) -> None:
        with Path("/dev/full").open("wb") as full:
            os.dup2(full.fileno(), file.fileno())
        file.write(b"token vectors")
        file.flush()

    last = fed.log.last
    child = MergeChild(
        base=fed.shard, shard=fed.shard, upto=last, bundle=default_bundle(), write_tokens=fill_disk
    )
    assert child.run().sequence == last


def test_damaged_token_vectors_that_were_handed_over_count_as_missing(tmp_path: Path) -> None:
    path, levels = tmp_path / "handed", np.full((4, 8), 7, np.int8)
    with path.open("wb") as file:
        write_tokens(file, FINGERPRINT, [("a", 1, levels), ("b", 2, levels)])
    flip_bit(path, 70)
    with path.open("rb") as file:
        handed = HandedTokens(file.fileno())
        assert handed.packed("a", 1) == with_checksum(levels.tobytes())
        assert handed.packed("b", 2) == b""
        assert (handed.packed("a", 2), handed.size("a", 2)) == (b"", 0)


def test_incomplete_token_vectors_are_not_used_until_a_merge_completes_them(fed: Fed) -> None:
    fed.put("new 0", "one more text")
    full, _ = merged(fed, fed.shard, room=(fed.shard / "token-vectors.bin").stat().st_size // 2)
    assert "there is no room" in full.without_states
    assert opened(Path(full.directory)).token_vectors is None
    fed.put("new 1", "one more text")
    done, _ = merged(fed, Path(full.directory))
    assert opened(Path(done.directory)).token_vectors is not None


def test_built_token_vectors_are_removed_once_a_generation_has_all(fed: Fed) -> None:
    fed.put("new", "one more text")
    done, _ = merged(fed, fed.shard)
    remove_obsolete(fed.shard, done.sequence)
    assert not any((fed.shard / name).exists() for name in TOKEN_VECTORS.files)
    # the generation has no states, so those of the built shard stay
    assert all((fed.shard / name).exists() for name in READER_STATES.files)


def test_a_snapshot_contains_token_vectors_and_states(fed: Fed) -> None:
    fed.put("new", "one more text")
    done, _ = merged(fed, fed.shard)
    StatesWriter(Path(done.directory), lower()).write(1, lambda *_: None, lambda _: None)
    fed.put("later", "another text")
    url, target = fed.shard.parent / "snapshots", fed.shard.parent / "restored"
    take_snapshot(fed.shard, str(url), NoProgress(), lambda: datetime.now(UTC))
    restore_snapshot(str(url / fed.shard.name), target, NoProgress())
    segment = opened(read_current_shard(target).base)
    assert segment.token_vectors is not None
    assert segment.states is not None


def test_a_damaged_file_is_a_fault(fed: Fed) -> None:
    data = bytearray((fed.shard / "token-vectors.bin").read_bytes())
    data[7] ^= 1
    (fed.shard / "token-vectors.bin").write_bytes(data)
    assert "winnow index token-vectors" in states_fault(fed.shard, TOKEN_VECTORS)


class NextTokens(FakePassageTokens):
    """A model of the next bundle, which encodes as many tokens as that of the default bundle."""

    fingerprint = "n" * 16

    def count_tokens(self, stored: StoredPassage) -> int:
        return super().count_tokens(stored) + 2

    def levels(self, stored: StoredPassage) -> NDArray[np.int8]:
        return np.pad(super().levels(stored), ((1, 1), (0, 0)))


def test_a_merge_copies_token_vectors_of_the_next_bundle(fed: Fed) -> None:
    """They were computed while nodes still serve another bundle."""
    model = NextTokens()
    StatesWriter(fed.shard, model).write(1, lambda *_: None, lambda _: None)
    before = StateFile.open_beside(
        fed.shard, read_states_manifest(fed.shard, TOKEN_VECTORS), TOKEN_VECTORS
    )
    fed.apply([("new", "one more text"), ("built 3", None)])
    served = partial(carry_states, default_bundle(), fed.shard)
    done = merge(fed.shard, fed.shard, fed.log.last, served)
    assert "so 1 passage got none; `winnow index token-vectors`" in done.without_states
    generation = Path(done.directory)
    model.computed.clear()
    StatesWriter(generation, model).write(1, lambda *_: None, lambda _: None)
    assert model.computed == ["new"]
    after = StateFile.open_beside(
        generation, read_states_manifest(generation, TOKEN_VECTORS), TOKEN_VECTORS
    )
    assert after.packed(5) == before.packed(5)


def test_a_merge_without_data_names_the_command_for_each_kind(fed: Fed, tmp_path: Path) -> None:
    generation = tmp_path / "generation"
    generation.mkdir()
    reasons = carry_states(tmp_path / "no bundle", fed.shard, fed.shard, generation)
    for kind in (READER_STATES, TOKEN_VECTORS):
        assert f"`winnow index {kind.command}` computes all" in reasons
