"""`winnow index verify` of a shard that has states."""

from pathlib import Path

import numpy as np
import pytest
from fake_split_reader import lower
from live_shards import Fed, built

from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.merging.merge import merge
from winnow.content_node.states import checking
from winnow.content_node.states.checking import states_fault
from winnow.content_node.states.manifest import DATA, STARTS, STATES_FILE, read_states_manifest
from winnow.content_node.states.writing import StatesWriter
from winnow.reading.states_kind import StatesKind

TEXTS = {f"built {n}": f"text number {n} of {n % 7}" for n in range(30)}


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return built(tmp_path, TEXTS)


def write(shard: Path) -> None:
    StatesWriter(shard, lower()).write(1, lambda *_: None, lambda _: None)


def test_a_shard_without_states_is_good(shard: Path) -> None:
    assert states_fault(shard) == ""


def test_a_shard_with_its_states_is_good(shard: Path) -> None:
    write(shard)
    assert states_fault(shard) == ""


@pytest.mark.parametrize("name", [STATES_FILE, DATA, STARTS])
@pytest.mark.parametrize("how", ["flipped", "cut", "missing"])
def test_damaged_states_are_a_fault_with_a_remedy(shard: Path, name: str, how: str) -> None:
    write(shard)
    data = bytearray((shard / name).read_bytes())
    data[len(data) // 2] ^= 1
    if how == "missing":
        (shard / name).unlink()
    else:
        (shard / name).write_bytes(data if how == "flipped" else data[:-1])
    if (name, how) == (STATES_FILE, "missing"):
        assert states_fault(shard) == ""  # there are none
        return
    assert "` (with --bundle, if nodes have one) replaces them" in states_fault(shard)
    write(shard)
    assert states_fault(shard) == ""


def test_states_of_another_generation_are_a_fault(shard: Path) -> None:
    write(shard)
    fed = Fed(shard, TEXTS)
    fed.apply([("new 0", "one")])
    merge(shard, shard, fed.log.last)
    base = read_current_shard(shard).base
    for name in (STATES_FILE, DATA, STARTS):
        (base / name).write_bytes((shard / name).read_bytes())
    assert "another generation" in states_fault(base)


def test_states_that_are_replaced_meanwhile_are_not_a_fault(
    shard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shard)
    (shard / DATA).write_bytes(b"damaged")
    read, times = read_states_manifest, [0]

    def meanwhile(directory: Path, kind: StatesKind) -> object:
        found = read(directory, kind)
        if not times[0]:
            times[0] = 1
            write(shard)
        return found

    monkeypatch.setattr(checking, "read_states_manifest", meanwhile)
    np.save(shard / STARTS, np.zeros(1, np.uint64))
    assert states_fault(shard) == ""
