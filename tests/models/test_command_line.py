"""Tests of refused commands, and of provenance and accuracy in a bundle."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.main import get_command
from typer.testing import CliRunner, Result

from models.assemble import amend_manifest
from models.cli import app
from models.data import DataError
from models.steps.bundle import BundleNaming, _split_runs, make_bundle
from models.training import checkpoint
from models.workspace import ReaderKind, Workspace
from winnow.bundle import read_manifest
from winnow.packaged import default_bundle

COMMANDS = [
    "build",
    "mine",
    "train-encoder",
    "train-reader",
    "mine-ranking",
    "train-ranking",
    "mine-clozes",
    "train-apart",
    "ask-documents",
    "pack",
    "train-retrieval",
    "train-packed-reader",
    "assemble",
    "calibrate",
    "calibrate-texts",
    "verify",
    "measure",
    "record",
    "ladder",
    "export",
    "random",
    "train-head",
    "measure-heads",
]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The manifest of the default bundle, to be written to."""
    directory = tmp_path / "bundle"
    directory.mkdir()
    shutil.copyfile(default_bundle() / "bundle.json", directory / "bundle.json")
    return directory


def test_every_command_is_listed_in_the_order_of_work() -> None:
    said = invoke("--help").output
    places = [said.index(f" {command} ") for command in COMMANDS]
    assert places == sorted(places)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help(command: str) -> None:
    group: Any = get_command(app)
    options = [each for each in group.commands[command].params if each.name != "help"]
    assert options
    assert all(option.help for option in options)


@pytest.mark.parametrize("command", ["train-reader", "train-encoder"])
def test_too_many_layers_are_a_usage_error(command: str) -> None:
    refused = invoke(command, "--layers", 7)
    assert refused.exit_code == 2
    assert "less than or equal to 6" in refused.output


@pytest.mark.parametrize(
    "command",
    [
        ("train-reader",),
        ("train-reader", "--layers", 2),
        ("train-encoder",),
        ("train-encoder", "--layers", 2),
        ("ladder", "--out", "out"),
        ("train-ranking",),
        ("train-apart",),
        ("assemble",),
        ("assemble", "--layers", 2),
        ("assemble", "--apart", 1),
    ],
)
def test_a_missing_work_directory_is_not_created(
    weights: Path, tmp_path: Path, command: tuple[object, ...]
) -> None:
    work = tmp_path / "typo"
    refused = invoke(*command, "--weights", weights, "--work", work)
    assert isinstance(refused.exception, DataError), refused.output
    assert not work.exists()


def test_limit_and_record_are_refused_together() -> None:
    refused = invoke("verify", "--limit", 10, "--record")
    assert refused.exit_code == 2
    assert "leave out --limit or --record" in " ".join(refused.output.replace("│", " ").split())


def test_a_curve_is_recorded_under_its_name(bundle: Path, tmp_path: Path) -> None:
    found = tmp_path / "dev.json"
    found.write_text(
        json.dumps(
            {
                "figures": [{"passages": 5, "exact_match": 40.127, "f1": 45.5, "recall": 1}],
                "max_loss": 0.0,
            }
        )
    )
    done = invoke("record", "--evaluation", f"dev={found}", "--index", "few", "--bundle", bundle)
    assert done.exit_code == 0, done.output
    accuracy = read_manifest(bundle).accuracy
    assert accuracy["passages_read"] == {"dev": {"5": {"em": 40.13, "f1": 45.5}}}
    assert accuracy["index"] == "few"
    assert "gold" in accuracy


@pytest.mark.parametrize("max_loss", [{"max_loss": 0.3}, {"max_loss": None}, {}])
def test_a_curve_with_early_stopping_is_not_recorded(
    bundle: Path, tmp_path: Path, max_loss: dict[str, float | None]
) -> None:
    found, before = tmp_path / "dev.json", (bundle / "bundle.json").read_bytes()
    figures = [{"passages": 5, "exact_match": 40.127, "f1": 45.5}]
    found.write_text(json.dumps({"figures": figures, **max_loss}))
    refused = invoke("record", "--evaluation", f"dev={found}", "--index", "few", "--bundle", bundle)
    assert refused.exit_code == 2
    assert "--max-loss 0" in " ".join(refused.output.replace("│", " ").split())
    assert (bundle / "bundle.json").read_bytes() == before


@pytest.mark.parametrize(
    ("given", "content"),
    [("dev", None), ("dev={}", None), ("dev={}", "no json"), ("dev={}", "[]"), ("dev={}", "{}")],
)
def test_an_invalid_evaluation_is_a_usage_error_and_changes_nothing(
    bundle: Path, tmp_path: Path, given: str, content: str | None
) -> None:
    file, before = tmp_path / "found.json", (bundle / "bundle.json").read_bytes()
    if content is not None:
        file.write_text(content)
    refused = invoke(
        "record", "--evaluation", given.format(file), "--index", "few", "--bundle", bundle
    )
    assert refused.exit_code == 2
    assert "NAME=FILE" in refused.output
    assert (bundle / "bundle.json").read_bytes() == before


def test_an_unfinished_run_is_not_in_the_provenance(tiny_weights: Path, tmp_path: Path) -> None:
    """The bundle then has the pretrained encoder."""
    work = Workspace(tmp_path / "work").create()
    for name in ("encoder", "reader"):
        work.graph(name, "int8").write_bytes(b"")  # a graph of nothing
        state = {"step": 50, "steps": 544, "plan": {"seed": 1}, "network": torch.zeros(1)}
        checkpoint.save(
            work.run_checkpoint_path(name), {**state, "step": 50 if name == "encoder" else 544}
        )
    make_bundle(
        tiny_weights, work, tmp_path / "bundle", BundleNaming("tiny", "1", 10), ReaderKind()
    )
    provenance = read_manifest(tmp_path / "bundle").provenance
    assert provenance["encoder"] == {}
    assert [run["steps"] for run in provenance["readers"]] == [544]


def test_the_provenance_of_an_earlier_reader_is_kept(tiny_weights: Path, tmp_path: Path) -> None:
    """A student of a reader that learnt to rank, beside the encoder of a bundle with halves."""
    work, first = Workspace(tmp_path / "work").create(), tmp_path / "first"
    for graph in (work.graph("encoder", "int8"), work.graph("reader", "int8"),
                  work.graph("reader", "int8", 2)):  # fmt: skip
        graph.write_bytes(b"")
    state = {"step": 5, "steps": 5, "plan": {"seed": 1}, "network": torch.zeros(1)}
    checkpoint.save(work.run_checkpoint_path("ranking"), state)
    make_bundle(tiny_weights, work, first, BundleNaming("first", "1", 10), ReaderKind())
    amend_manifest(first, provenance={**read_manifest(first).provenance, "apart": [{"steps": 7}]})
    work.run_checkpoint_path("ranking").unlink()
    checkpoint.save(work.run_checkpoint_path("reader", 2), state)
    second = tmp_path / "second"
    make_bundle(tiny_weights, work, second, BundleNaming("second", "1", 10), ReaderKind(2), first)
    provenance = read_manifest(second).provenance
    assert provenance["ranking"] == {"steps": 5, "plan": {"seed": 1}}
    assert provenance["student"]["steps"] == 5
    assert "apart" not in provenance


def test_provenance_names_a_run_once_if_it_starts_from_its_own_bundle(
    tmp_path: Path,
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(default_bundle(), bundle)
    run = tmp_path / "run.pt"
    plan = {"seed": 2, "apart": {"begun": str(bundle)}}
    checkpoint.save(run, {"step": 5, "steps": 5, "plan": plan, "network": torch.zeros(1)})
    amend_manifest(bundle, provenance={"apart": [{"steps": 4, "plan": {"seed": 1}}]})
    for _ in range(3):
        runs = _split_runs(run)
        assert [each["plan"]["seed"] for each in runs] == [1, 2]
        amend_manifest(bundle, provenance={"apart": runs})


def test_provenance_names_a_missing_checkpoint(tmp_path: Path) -> None:
    run = tmp_path / "run.pt"
    plan = {"apart": {"begun": str(tmp_path / "gone.pt")}}
    checkpoint.save(run, {"step": 5, "steps": 5, "plan": plan, "network": torch.zeros(1)})
    lost, own = _split_runs(run)
    assert "not there any more" in lost["lost"]
    assert own["steps"] == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layers", 3], "is not the reader of 3 layers"),
        (["--apart", 3], "is not the reader with 3 split layers"),
        ([], "is not the full reader"),
    ],
)
@pytest.mark.parametrize("command", ["measure", "verify"])
def test_a_bundle_with_another_reader_is_not_measured(
    tmp_path: Path, command: str, arguments: list[object], said: str
) -> None:
    bundle, work = tmp_path / "bundle", Workspace(tmp_path / "work").create()
    shutil.copytree(default_bundle(), bundle)
    before = (bundle / "bundle.json").read_bytes()
    measure = [command, *arguments, "--work", work.root, "--bundle", bundle]
    assert "export it with `winnow models assemble`" in str(invoke(*measure).exception)
    halves = (work.split_graph("upper", "int8", 3), work.split_graph("lower", "int8", 3))
    for graph in (work.graph("reader", "int8"), work.graph("reader", "int8", 3), *halves):
        graph.write_bytes(b"another")
    assert said in str(invoke(*measure).exception)
    assert (bundle / "bundle.json").read_bytes() == before


def test_provenance_names_runs_once_if_they_start_from_each_other(tmp_path: Path) -> None:
    """The file of a run is that of a later run, if it was trained again."""
    work = Workspace(tmp_path / "work").create()
    for layers, begun in ((1, 2), (2, 1)):
        plan = {"apart": {"apart": layers, "begun": str(work.split_run_checkpoint_path(begun))}}
        state = {"step": 5, "steps": 5, "plan": plan, "network": torch.zeros(1)}
        checkpoint.save(work.split_run_checkpoint_path(layers), state)
    runs = _split_runs(work.split_run_checkpoint_path(1))
    assert [run["plan"] for run in runs] == [{"apart": {"apart": layers}} for layers in (2, 1)]


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot make .*file/work: .*--work"):
        Workspace(tmp_path / "file" / "work").create()
