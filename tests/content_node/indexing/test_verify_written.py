"""Checking an index that was written to, also while it is."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from archiving_index import built_index
from conftest import PASSAGES
from damaged_files import flip_bit
from fake_split_reader import lower
from fed_index import FedIndex
from live_writes import logged
from typer.testing import CliRunner

from winnow.bundle import Bundle
from winnow.content_node.indexing import verify, verify_writes
from winnow.content_node.indexing.cli import app
from winnow.content_node.indexing.contents import check_contents
from winnow.content_node.indexing.verify import ShardReport, verify_index
from winnow.content_node.live.copying import check_live_log
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.reading import log_path
from winnow.content_node.merging.names import generation_path
from winnow.content_node.shard.built_files import remove_built_passages
from winnow.content_node.shard.saving import FILES
from winnow.content_node.states.manifest import DATA, STATES_FILE
from winnow.content_node.states.writing import StatesWriter

FIRST, SECOND = PASSAGES[0][0], PASSAGES[1][0]


@pytest.fixture
def fed(indexes: dict[int, Path], tmp_path: Path) -> FedIndex:
    """One shard: three writes that were merged and two that were not."""
    fed = FedIndex(indexes[1], tmp_path / "fed")
    fed.put("new", "a first text")
    fed.put(FIRST, "another text")
    fed.delete(SECOND)
    fed.merge(0)
    fed.put("new", "a second text")
    fed.put("last", "of all")
    return fed


def verified(fed: FedIndex) -> ShardReport:
    [report] = verify_index(fed.index, 50, 0.95)
    return report


def test_an_index_is_good_with_all_that_was_written(fed: FedIndex) -> None:
    """Also while a node holds it."""
    report = verified(fed)
    assert report.faults == ()
    assert (report.passages, report.sequence, report.unmerged) == (len(fed.held), 5, 2)
    fed.merge(0)
    report = verified(fed)
    assert report.faults == ()
    assert (report.passages, report.sequence, report.unmerged) == (len(fed.held), 5, 0)
    fed.close()
    assert verified(fed) == report


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_damaged_file_of_a_generation_is_named(fed: FedIndex, name: str) -> None:
    fed.close()
    path = generation_path(fed.shards[0], 3) / name
    flip_bit(path, path.stat().st_size // 2)
    [fault] = verified(fed).faults
    assert f"{path} is damaged" in fault


def test_a_graph_of_a_generation_that_finds_too_little_is_a_fault(fed: FedIndex) -> None:
    fed.close()
    [report] = verify_index(fed.index, 50, 1.1)
    built, merged = report.faults
    assert "must be at least 1.1" in built
    assert merged == f"{generation_path(fed.shards[0], 3).name}: {built}"


def test_a_damaged_log_is_named(fed: FedIndex) -> None:
    fed.close()
    path = log_path(fed.shards[0])
    path.write_bytes(path.read_bytes().replace(b"of all", b"of alI"))
    [fault] = verified(fed).faults
    assert f"{path} is damaged" in fault
    path.unlink()
    [fault] = verified(fed).faults
    assert f"{path} is missing" in fault


def test_a_generation_that_is_missing_is_a_fault(fed: FedIndex) -> None:
    fed.close()
    shutil.rmtree(generation_path(fed.shards[0], 3))
    [fault] = verified(fed).faults
    assert "holds writes 4 to 5, but the shard's base ends at write 0" in fault


def test_a_log_that_does_not_go_on_from_the_base_is_a_fault(fed: FedIndex) -> None:
    log = fed.logs[0]
    log.append([logged(6, "not there", None, removed_words=b"\1\0\0\0"), logged(7, "short")])
    log.acknowledge()
    fed.close()
    there, vector = verified(fed).faults
    assert "disagree on whether passage not there existed" in there
    assert "has a vector of 8 values" in vector


@pytest.mark.parametrize("step", ["check_contents", "PassageStore", "check_live_log"])
def test_a_merge_meanwhile_is_no_fault(
    fed: FedIndex, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    merges, then = [fed.merge], getattr(verify_writes, step)

    def after_merging(*values: Any, **options: Any) -> object:
        if merges:
            merges.pop()(0)
            shutil.rmtree(generation_path(fed.shards[0], 3))
            if step == "check_contents":
                raise FileNotFoundError
        return then(*values, **options)

    monkeypatch.setattr(verify_writes, step, after_merging)
    report = verified(fed)
    assert (report.faults, report.passages, report.unmerged) == ((), len(fed.held), 0)
    fed.close()


@pytest.mark.bundle
def test_the_removal_of_built_passages_meanwhile_is_no_fault(
    bundle: Bundle, tmp_path: Path, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an index with tenants a merge removes them."""

    def after_removal(directory: Path, *values: Any) -> object:
        remove_built_passages(directory)
        return check_contents(directory, *values)

    monkeypatch.setattr(verify, "check_contents", after_removal)
    [report] = verify_index(built_index(bundle, tmp_path, recorder), 10, 0.9)
    assert (report.faults, report.passages) == ((), 3)


def test_the_command_says_how_many_writes_are_unmerged(fed: FedIndex) -> None:
    done = CliRunner().invoke(app, ["verify", str(fed.index)])
    assert done.exit_code == 0
    assert "5 writes, 2 of them unmerged" in done.stdout
    fed.close()


def test_inspect_shows_the_writes(fed: FedIndex) -> None:
    """Also while a node holds it."""
    log_id = fed.logs[0].log_id
    done = CliRunner().invoke(app, ["inspect", str(fed.index)])
    assert "shard 0: 5 writes, 2 of them unmerged; generation " in done.stdout
    assert log_id in done.stdout
    done = CliRunner().invoke(app, ["inspect", str(fed.index), "--json"])
    [writes] = json.loads(done.stdout)["writes"]
    assert (writes["sequence"], writes["unmerged"], writes["log_id"]) == (5, 2, log_id)
    fed.close()


def test_passages_and_states_that_are_shown_are_those_of_the_newest_generation(
    fed: FedIndex,
) -> None:
    fed.merge(0)
    fed.close()
    base = generation_path(fed.shards[0], 5)

    def shown() -> str:
        return " ".join(CliRunner().invoke(app, ["inspect", str(fed.index)]).stdout.split())

    def states() -> str:
        """The last word of the table's only row."""
        rows = CliRunner().invoke(app, ["inspect", str(fed.index)]).stdout.splitlines()
        return next(row for row in rows if row.split()[:1] == ["0"]).split()[-1]

    assert f": {len(fed.held):,} passages, 1 shard, " in shown()
    assert states() == "none"
    (base / "states-a-b.partial").touch()
    assert states() == "begun"
    StatesWriter(base, lower()).write(1, lambda *_: None, lambda _: None)
    assert states() == f"{(base / DATA).stat().st_size / 1e6:,.1f}"
    said = f"of another reader than the default bundle's ({lower().fingerprint})"
    assert f"states are {said}" in shown()
    assert f"states checked, {said}" in CliRunner().invoke(app, ["verify", str(fed.index)]).stdout
    with (base / DATA).open("ab") as data:
        data.write(b"more")
    assert states() == "unusable"


def test_an_index_that_was_never_written_to_says_nothing_of_writes(
    indexes: dict[int, Path],
) -> None:
    done = CliRunner().invoke(app, ["inspect", str(indexes[1])])
    assert done.exit_code == 0
    assert "unmerged" not in done.stdout


def test_writes_during_a_check_do_not_change_it(fed: FedIndex) -> None:
    seen = []

    def take(write: LoggedWrite) -> None:
        seen.append(write.sequence)
        fed.put(f"meanwhile {write.sequence}", "some text")

    found = check_live_log(fed.shards[0], lambda _: take)
    assert found is not None
    assert (found[0].last, seen) == (5, [4, 5])
    assert verified(fed).sequence == 7
    fed.close()


def test_damaged_states_are_named(fed: FedIndex) -> None:
    """Of the newest generation alone: nothing else is served or rebuilt."""
    fed.close()
    (fed.shards[0] / STATES_FILE).write_text("{}")
    assert verified(fed).faults == ()
    (generation_path(fed.shards[0], 3) / STATES_FILE).write_text("{}")
    [fault] = verified(fed).faults
    assert fault.startswith(f"{generation_path(fed.shards[0], 3).name}: some states cannot be used")
    assert f"`winnow index states {fed.shards[0]}` (with --bundle, if nodes have one)" in fault
