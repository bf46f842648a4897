"""Power losses while states are written, at each sync: nothing wrong is left, and nothing done is
lost.
"""

import itertools
import os
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fake_split_reader import lower
from shards_made import make, passages

from simulation.disk import Disk
from winnow.content_node.shard import open_shard
from winnow.content_node.states.writing import StatesWriter

COUNT, SEEDS = 12, 8


class PowerCutError(Exception):
    """The machine has lost its power."""


def cut_disk(path: Path, cut: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Returns a disk with a built shard, which loses its power at a sync."""
    disk = Disk(path, Random(seed))
    make(path / "shard", passages(COUNT))
    disk.sync_all()

    def sync(descriptor: int) -> None:
        if disk.syncs == cut:
            raise PowerCutError
        disk.sync(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", sync)
    return disk


def expect_all(shard: Path) -> None:
    own = lower()
    segment = open_shard(shard, ef=64, lower_layers_fingerprint=own.fingerprint)
    assert segment.states is not None
    for row in range(COUNT):
        stored = segment.load(row)
        assert stored.states is not None
        assert np.array_equal(stored.states.levels, own.passage_states(stored).levels)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_power_cut_at_any_sync_leaves_states_that_can_be_resumed(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cut in itertools.count():
        disk = cut_disk(tmp_path / f"disk-{cut}", cut, seed, monkeypatch)
        try:
            StatesWriter(disk.root / "shard", lower()).write(1, lambda *_: None, lambda _: None)
        except PowerCutError:
            root = disk.restart(power_loss=True)
        else:
            root = disk.restart(power_loss=True)
            expect_all(root / "shard")
            assert cut >= 4, "there is a sync of the data, of its index, and of their names"
            return
        monkeypatch.undo()
        StatesWriter(root / "shard", lower()).write(1, lambda *_: None, lambda _: None)
        expect_all(root / "shard")
