"""States over merges: carried on, made again where there was no room, and never kept twice."""

from pathlib import Path
from typing import Any

import pytest
from fake_split_reader import LowerSession, lower
from live_shards import Fed, built
from small_disks import limited_files

from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.states import write_carried_states
from winnow.content_node.merging.tidying import remove_obsolete
from winnow.content_node.shard import open_shard
from winnow.content_node.states.manifest import DATA, FILES, STATES_FILE
from winnow.content_node.states.removing import are_complete
from winnow.content_node.states.reusable_states import open_reusable_states
from winnow.content_node.states.writing import StatesWriter
from winnow.domain.tenant import stored_id
from winnow.errors import UnavailableError
from winnow.files.lock import locked
from winnow.reading.states_kind import READER_STATES

TEXTS = {f"built {n}": f"text number {n} " * 9 for n in range(30)}
OF = "f" * 16


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    fed = Fed(built(tmp_path, TEXTS), TEXTS)
    compute(fed.shard)
    return fed


def compute(directory: Path) -> int:
    """Does as `winnow index states`; how many passages' states it computed."""
    session = LowerSession()
    StatesWriter(directory, lower(session)).write(1, lambda *_: None, lambda _: None)
    return len(session.runs)


def merged(fed: Fed, base: Path, most: int = 1_000) -> tuple[Merged, int]:
    """A merge, and how many passages' states it computed."""
    session = LowerSession()

    def carry(before: Path, made: Path) -> str:
        known = open_reusable_states([before], OF)
        assert known
        return write_carried_states(made, lower(session), known, most)

    done = merge(base, fed.shard, fed.log.last, carry)
    return done, len(session.runs)


def with_states(directory: Path) -> set[str]:
    """The passages that are read with states."""
    segment = open_shard(directory, ef=64, lower_layers_fingerprint=OF)
    rows = segment.store.row_numbers().tolist()
    return {
        name
        for row, (name, _) in zip(rows, segment.store.ids_and_sequences(rows), strict=True)
        if segment.load(row).states is not None
    }


def merged_without_room(fed: Fed) -> Merged:
    """A merge that has room for all but states."""
    session = LowerSession()

    def carry(before: Path, made: Path) -> str:
        known = open_reusable_states([before], OF)
        assert known
        with limited_files((fed.shard / DATA).stat().st_size // 2):
            return write_carried_states(made, lower(session), known, 1_000)

    return merge(fed.shard, fed.shard, fed.log.last, carry)


def test_a_merge_computes_the_states_of_what_is_new(fed: Fed) -> None:
    fed.put("new", "one more text")
    done, computed = merged(fed, fed.shard)
    assert (done.without_states, computed) == ("", 1)
    assert with_states(Path(done.directory)) == set(fed.passages)


def test_states_that_had_no_room_are_made_again_by_later_merges(fed: Fed) -> None:
    """A part by each merge: it takes a bounded time, and what has states is read faster at once."""
    fed.put("new 0", "one more text")
    full = merged_without_room(fed)
    assert "there is no room" in full.without_states
    assert with_states(Path(full.directory)) == set()
    assert (Path(full.directory) / DATA).stat().st_size == 0
    base, held = Path(full.directory), 0
    for number in range(1, 4):
        fed.put(f"new {number}", "one more text")
        done, computed = merged(fed, base, most=12)
        base, held = Path(done.directory), min(held + 12, len(fed.passages))
        assert computed <= 12
        assert len(with_states(base)) == held
        assert f"new {number}" in with_states(base)
        lacking = len(fed.passages) - held
        said = f"{lacking} passages have no states yet: each merge computes some" if lacking else ""
        assert done.without_states == said
    assert with_states(base) == set(fed.passages)


def test_what_a_merge_left_out_is_computed_by_hand(fed: Fed) -> None:
    fed.put("new", "one more text")
    base = Path(merged_without_room(fed).directory)
    assert compute(base) == len(fed.passages)
    assert with_states(base) == set(fed.passages)


def test_the_states_of_what_was_built_go_when_a_generation_has_all(fed: Fed) -> None:
    asked = open_shard(
        fed.shard, ef=64, lower_layers_fingerprint=OF
    )  # a question reads on from what is open
    fed.put("new", "one more text")
    done, _ = merged(fed, fed.shard)
    (fed.shard / "states-a-b.partial").write_bytes(b"of an interrupted command")
    remove_obsolete(fed.shard, done.sequence)
    assert not [*(fed.shard / name for name in FILES if (fed.shard / name).exists())]
    assert not list(fed.shard.glob("states-*"))
    assert asked.load(3).states is not None
    assert with_states(Path(done.directory)) == set(fed.passages)
    assert open_shard(fed.shard, ef=64, lower_layers_fingerprint=OF).states is None
    remove_obsolete(fed.shard, done.sequence)


def test_the_states_of_what_was_built_stay_while_a_generation_lacks_some(fed: Fed) -> None:
    fed.put("new", "one more text")
    done = merged_without_room(fed)
    assert not are_complete(Path(done.directory))
    remove_obsolete(fed.shard, done.sequence)
    assert with_states(fed.shard) == set(TEXTS)


def test_states_of_another_generation_are_none(fed: Fed) -> None:
    fed.put("new", "one more text")
    done, _ = merged(fed, fed.shard)
    for name in FILES:
        (Path(done.directory) / name).write_bytes((fed.shard / name).read_bytes())
    remove_obsolete(fed.shard, done.sequence)
    assert with_states(fed.shard) == set(TEXTS)


def test_nothing_goes_while_a_process_computes_states(fed: Fed) -> None:
    fed.put("new", "one more text")
    done, _ = merged(fed, fed.shard)
    with locked(fed.shard / READER_STATES.lock, "the test holds it"):
        remove_obsolete(fed.shard, done.sequence)
    assert with_states(fed.shard) == set(TEXTS)


def test_states_of_tenants_are_removed_once_no_process_computes_them(tmp_path: Path) -> None:
    """They may be of a tenant that was deleted. After the error, the node tries again."""
    texts = {stored_id("a", name.replace(" ", "-")): text for name, text in TEXTS.items()}
    fed = Fed(built(tmp_path, texts, tenants=True), texts)
    compute(fed.shard)
    fed.delete(next(iter(texts)))
    done = merge(fed.shard, fed.shard, fed.log.last)
    with (
        locked(fed.shard / READER_STATES.lock, "the test holds it"),
        pytest.raises(UnavailableError, match=r"the states of .* are being computed"),
    ):
        remove_obsolete(fed.shard, done.sequence)
    remove_obsolete(fed.shard, done.sequence)
    assert not any((fed.shard / name).exists() for name in FILES)


@pytest.mark.parametrize("after", [1, 2])
def test_a_process_killed_while_states_go_leaves_none_that_could_be_used(
    fed: Fed, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    fed.put("new", "one more text")
    done, _ = merged(fed, fed.shard)
    gone: list[str] = []

    class KilledError(BaseException):
        pass

    unlink = Path.unlink

    def killed(self: Path, *arguments: Any, **named: Any) -> None:
        if len(gone) == after:
            raise KilledError
        gone.append(self.name)
        unlink(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", killed)
        with pytest.raises(KilledError):
            remove_obsolete(fed.shard, done.sequence)
    assert gone[0] == STATES_FILE
    assert open_shard(fed.shard, ef=64, lower_layers_fingerprint=OF).states is None
    remove_obsolete(fed.shard, done.sequence)
    assert not list(fed.shard.glob("states*.bin")) + list(fed.shard.glob("states*.npy"))
