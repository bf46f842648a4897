"""Tests of `winnow heads refit`: heads are retrained for another encoder and moved."""

from pathlib import Path

import pytest
from heads_made import sentences, texts, tiny_bundle
from typer.testing import CliRunner, Result

from models.cli import app
from models.cli.heads import refit
from winnow.bundle import Bundle
from winnow.errors import ArtefactError
from winnow.heads.store import HeadStore, open_store

pytestmark = pytest.mark.timeout(400)

QUICK = ["--epochs", 12, "--batch", 16, "--dropout", 0.1, "--rate", 0.02, "--hidden", 16]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Bundle]:
    root = tmp_path_factory.mktemp("bundles")
    return tiny_bundle(root, "old"), tiny_bundle(root, "new", num_hidden_layers=2)


@pytest.fixture
def old(bundles: tuple[Bundle, Bundle], tmp_path: Path) -> HeadStore:
    """A store with a head of each kind, and with their data beside it."""
    store = open_store(tmp_path / "old")
    made = {
        "topic": ("sequence", texts(tmp_path / "texts.jsonl", 200)),
        "people": ("token", sentences(tmp_path / "sentences.jsonl", 200)),
    }
    for name, (kind, data) in made.items():
        command = ["train-head", "--data", data, "--kind", kind, "--id", name, "--out"]
        command += [tmp_path / name, "--bundle", bundles[0].directory, "--tenant", "zoo"]
        done = invoke_models(*command, "--work", tmp_path / "work", *QUICK)
        assert done.exit_code == 0, (done.output, done.exception)
        store.publish(tmp_path / name)
    return store


def invoke_models(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_refit(tmp_path: Path, new: Bundle, **options: object) -> int:
    """The exit code of `winnow heads refit`."""
    import typer

    group = typer.Typer()
    group.command()(refit)
    arguments = ["--from", tmp_path / "old", "--to", tmp_path / "new"]
    arguments += ["--bundle", new.directory, "--work", tmp_path / "work"]
    for name, value in options.items():
        arguments += [f"--{name}", value]
    done = CliRunner().invoke(group, [str(each) for each in arguments])
    return done.exit_code


def test_every_head_is_trained_again_published_and_moved(
    bundles: tuple[Bundle, Bundle], old: HeadStore, tmp_path: Path
) -> None:
    assert run_refit(tmp_path, bundles[1], worse=100) == 0
    new = open_store(tmp_path / "new")
    for head in ("topic", "people"):
        assert old.read_record(head).moved_to == "new"
        manifest = new.fetch(head, new.read_record(head).version).manifest
        before = old.manifest(head, 1)
        assert manifest.encoder.fingerprint == bundles[1].manifest.states_fingerprint
        assert (manifest.labels, manifest.tenant) == (before.labels, before.tenant)
        assert manifest.trained_on == before.trained_on


def test_a_head_that_loses_accuracy_stays_and_the_others_move(
    bundles: tuple[Bundle, Bundle], old: HeadStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "models.heads.refit.compare_versions",
        lambda before, _: ("accuracy", 90.0, 80.0 if before.id == "topic" else 90.0),
    )
    assert run_refit(tmp_path, bundles[1]) == 1
    assert old.read_record("topic").moved_to == ""
    assert old.read_record("people").moved_to == "new"
    assert open_store(tmp_path / "new").ids() == ["people"]


def test_a_head_whose_data_changed_stays(
    bundles: tuple[Bundle, Bundle], old: HeadStore, tmp_path: Path
) -> None:
    texts(tmp_path / "texts.jsonl", 100)
    assert run_refit(tmp_path, bundles[1], only="topic") == 1
    assert old.read_record("topic").moved_to == ""
    assert open_store(tmp_path / "new").ids() == []


def test_moved_training_data_is_found_by_name(
    bundles: tuple[Bundle, Bundle], old: HeadStore, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "texts.jsonl").rename(elsewhere / "texts.jsonl")
    assert run_refit(tmp_path, bundles[1], only="topic", worse=50) == 1
    assert run_refit(tmp_path, bundles[1], only="topic", worse=50, data=elsewhere) == 0


def test_an_interrupted_refit_resumes_without_training_again(
    bundles: tuple[Bundle, Bundle], old: HeadStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise ArtefactError("the store went away")

    with monkeypatch.context() as patch:
        patch.setattr("winnow.heads.store.file_store.HeadStore.move", unreachable)
        assert run_refit(tmp_path, bundles[1], only="topic", worse=50) == 1
    assert old.read_record("topic").moved_to == ""

    def never(*_: object) -> None:
        raise AssertionError("it is trained already")

    monkeypatch.setattr("models.heads.refit.make_head", never)
    assert run_refit(tmp_path, bundles[1], only="topic") == 0
    assert run_refit(tmp_path, bundles[1], only="topic") == 0
    assert old.read_record("topic").moved_to == "new"


def test_an_unknown_head_is_named(
    bundles: tuple[Bundle, Bundle], old: HeadStore, tmp_path: Path
) -> None:
    assert run_refit(tmp_path, bundles[1], only="nobody") == 1


def test_a_refit_for_the_same_encoder_is_refused(
    bundles: tuple[Bundle, Bundle], old: HeadStore, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    assert run_refit(tmp_path, bundles[0], worse=100) == 1
    assert [old.read_record(head).moved_to for head in old.ids()] == ["", ""]
    assert open_store(tmp_path / "new").ids() == []


def test_an_invalid_name_of_an_encoder_group_is_refused_first(
    bundles: tuple[Bundle, Bundle], old: HeadStore, tmp_path: Path
) -> None:
    assert run_refit(tmp_path, bundles[1], ring="No Ring") == 2
    assert not (tmp_path / "new").exists()
    assert all(not old.read_record(head).moved_to for head in old.ids())
