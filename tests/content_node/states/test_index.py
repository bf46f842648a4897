"""States of a shard that is merged meanwhile, by a node that has none."""

import shutil
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from conftest import Recorder
from fake_split_reader import LowerSession, lower
from live_shards import Fed, built
from rich.console import Console

from winnow.bundle import Bundle
from winnow.content_node.indexing import cli
from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.indexing.plan import BuildProgress
from winnow.content_node.merging.merge import merge
from winnow.content_node.shard import open_shard
from winnow.content_node.states.index import list_shards, write_shard_states, write_states
from winnow.content_node.states.manifest import STATES_FILE
from winnow.errors import ArtefactError

TEXTS = {f"built {n}": f"text number {n} of {n % 7}" for n in range(30)}


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    fed = Fed(built(tmp_path, TEXTS), TEXTS)
    fed.apply([("new 0", "one"), ("built 3", None)])
    merge(fed.shard, fed.shard, fed.log.last)
    fed.apply([("new 1", "two")])
    return fed


def states_computed(fed: Fed, session: LowerSession) -> None:
    write_shard_states(fed.shard, lower(session), 1, Recorder())


def expect_states(fed: Fed) -> None:
    segment = open_shard(
        read_current_shard(fed.shard).base, ef=64, lower_layers_fingerprint="f" * 16
    )
    assert segment.states is not None
    for row in segment.store.row_numbers().tolist():
        stored = segment.load(row)
        assert stored.states is not None
        assert np.array_equal(stored.states.levels, lower().passage_states(stored).levels)


class Merging(LowerSession):
    """A node merges the shard while the first passage is computed, and tidies up or not yet."""

    def __init__(self, fed: Fed, tidies: bool) -> None:
        super().__init__()
        self._fed, self._tidies = fed, tidies

    def run(self, inputs, stop=None):  # type: ignore[no-untyped-def]
        if not self.runs:
            base = read_current_shard(self._fed.shard).base
            merge(base, self._fed.shard, self._fed.log.last)
            if self._tidies:
                shutil.rmtree(base)
        return super().run(inputs, stop)


@pytest.mark.parametrize("tidies", [True, False])
def test_a_generation_merged_meanwhile_gets_states_too(fed: Fed, tidies: bool) -> None:
    session = Merging(fed, tidies)
    states_computed(fed, session)
    expect_states(fed)
    assert len(session.runs) == len(fed.passages)  # each once


def test_an_error_of_the_disk_comes_with_advice(fed: Fed) -> None:
    (read_current_shard(fed.shard).base / STATES_FILE).mkdir()
    with pytest.raises(ArtefactError, match="computed states are kept"):
        states_computed(fed, LowerSession())


def test_states_for_which_the_disk_has_no_room_are_not_begun(
    fed: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed states are kept, so the disk would stay full, and a node would refuse writes."""

    class Disk:
        free = 3_000

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk)
    session = LowerSession()
    with pytest.raises(ArtefactError, match=r"0 MB of free space for .*computed states are kept"):
        states_computed(fed, session)
    assert session.runs == []


def test_a_build_interrupted_while_computing_states_says_how_to_resume(
    monkeypatch: pytest.MonkeyPatch, bundle: Bundle
) -> None:
    """The index is there by then: the same command would refuse to build it."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "write_states", interrupted)
    said = StringIO()
    with (
        pytest.raises(KeyboardInterrupt),
        BuildProgress(Console(file=said, width=200)) as progress,
    ):
        cli.compute_states(Path("out"), bundle, 1, progress)
    assert "resume with `winnow index states out`" in said.getvalue()


def test_states_for_a_shard_of_another_encoder_are_refused_before_computing(
    fed: Fed, bundle: Bundle
) -> None:
    """No node would serve the shard with this bundle."""
    with pytest.raises(ArtefactError, match=r"was encoded by bundle .*, not by minilm-l6"):
        write_states(fed.shard, bundle, 1, Recorder())
    assert not list(fed.shard.glob("states*"))


def test_a_shard_alone_can_have_states_and_another_directory_cannot(fed: Fed) -> None:
    assert list_shards(fed.shard) == [fed.shard]
    with pytest.raises(ArtefactError, match=r"index\.json"):
        list_shards(fed.shard / "live")
