"""Tests of `winnow models train-head`: from labelled texts to a served head."""

import json
from pathlib import Path

import numpy as np
import pytest
from heads_made import RIVERS, sentences, texts, tiny_bundle, write_lines
from typer.testing import CliRunner, Result

from models.cli import app
from winnow.bundle import Bundle
from winnow.domain.prediction import SequencePrediction, TokenPrediction
from winnow.errors import IdentityError, WinnowError
from winnow.heads.artefact import load_head
from winnow.heads.head import Head, open_head
from winnow.heads.store import open_store
from winnow.inference.encoder import open_question_encoder
from winnow.text.tokenizer import Tokenizer

pytestmark = pytest.mark.timeout(400)

QUICK = ["--epochs", 25, "--batch", 16, "--dropout", 0.1, "--rate", 0.02, "--hidden", 16]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("bundles"), "tiny")


@pytest.fixture
def arguments(bundle: Bundle, tmp_path: Path) -> list[object]:
    """Options that all commands here share."""
    return ["--bundle", bundle.directory, "--work", tmp_path / "work", *QUICK]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["train-head", *map(str, arguments)])


def ask(head: Head, bundle: Bundle, text: str) -> SequencePrediction | TokenPrediction:
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special, states=True)
    states = encoder.with_states(tokenizer.tokenise(text).ids)[1]
    assert states is not None
    return head.predict(states.astype(np.float32))


def test_a_missing_output_directory_is_refused_first(tmp_path: Path) -> None:
    data = tmp_path / "not-there.jsonl"
    refused = invoke("--data", data, "--kind", "sequence", "--id", "topic")
    assert refused.exit_code == 2
    assert "Missing option '--out'" in refused.output


def test_a_sequence_head_labels_texts_and_finds_those_out_of_scope(
    bundle: Bundle, arguments: list[object], tmp_path: Path
) -> None:
    data, test = texts(tmp_path / "train.jsonl", 400), texts(tmp_path / "test.jsonl", seed=1)
    made = invoke(
        "--data", data, "--test", test, "--kind", "sequence", "--id", "topic", "--tenant", "zoo",
        "--licence", "data=CC0", "--out", tmp_path / "head", "--json", *arguments,
    )  # fmt: skip
    assert made.exit_code == 0, (made.output, made.exception)
    figures = json.loads(made.stdout)
    assert figures["accuracy"] > 95
    assert figures["out_of_scope_recall"] > 80
    artefact = load_head(tmp_path / "head")
    manifest = artefact.manifest
    assert (manifest.labels, manifest.tenant) == (("person", "river"), "zoo")
    assert manifest.licences == {"data": "CC0"}
    assert manifest.accuracy == figures
    assert manifest.encoder.fingerprint == bundle.manifest.states_fingerprint
    assert manifest.trained_on is not None
    assert Path(manifest.trained_on.data) == data
    said = ask(open_head(artefact), bundle, f"the {RIVERS[0]} in black {RIVERS[1]} {RIVERS[0]}")
    assert isinstance(said, SequencePrediction)
    assert said.labels[0].label == "river"


def test_a_token_head_finds_entities(
    bundle: Bundle, arguments: list[object], tmp_path: Path
) -> None:
    data, test = (
        sentences(tmp_path / "train.jsonl", 400),
        sentences(tmp_path / "test.jsonl", seed=1),
    )
    made = invoke(
        "--data", data, "--test", test, "--kind", "token", "--id", "people", "--names-only",
        "--out", tmp_path / "head", *arguments,
    )  # fmt: skip
    assert made.exit_code == 0, (made.output, made.exception)
    artefact = load_head(tmp_path / "head")
    assert artefact.manifest.accuracy["entity_f1"] > 95
    assert artefact.manifest.labels == ("O", "B-person", "I-person")
    assert artefact.manifest.trained_on is not None
    assert artefact.manifest.trained_on.data == "train.jsonl"
    said = ask(open_head(artefact), bundle, "black froome in the tour")
    assert isinstance(said, TokenPrediction)
    assert [span.label for span in said.spans] == ["person"]


def test_a_text_may_have_several_labels(arguments: list[object], tmp_path: Path) -> None:
    lines = ["text,label"]
    for number in range(150):
        own = [word for place, word in enumerate(("froome", "danube")) if number >> place & 1]
        lines.append(f"the {' '.join(own)} in black,{'|'.join(own)}")
    data = tmp_path / "data.csv"
    data.write_text("\n".join(lines), encoding="utf-8")
    made = invoke(
        "--data", data, "--kind", "sequence", "--id", "both", "--multi-label", "--json",
        "--out", tmp_path / "head", *arguments,
    )  # fmt: skip
    assert made.exit_code == 0, (made.output, made.exception)
    assert json.loads(made.stdout)["held_out_label_f1"] > 95
    assert load_head(tmp_path / "head").manifest.multi_label


def renamed(path: Path, count: int, **fields: object) -> Path:
    """Returns the texts; the labels of the first ones are not in the training texts."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return write_lines(path, [row | fields for row in rows[:count]] + rows[count:])


def test_texts_with_labels_that_training_lacks_count_as_wrong(
    arguments: list[object], tmp_path: Path
) -> None:
    """Public ATIS has such labels, in the test file and in the validation file."""
    data = texts(tmp_path / "train.jsonl", 400)
    held = renamed(texts(tmp_path / "held.jsonl", 100, seed=1), 10, label="lake")
    test = renamed(texts(tmp_path / "test.jsonl", 100, seed=2), 20, label="sea")
    made = invoke(
        "--data", data, "--validation", held, "--test", test, "--kind", "sequence", "--id", "topic",
        "--out", tmp_path / "head", "--json", *arguments,
    )  # fmt: skip
    assert made.exit_code == 0, (made.output, made.exception)
    figures = json.loads(made.stdout)
    # of 100 texts 20 have no label; of the first 10, 20 with other labels they are 2, 4
    assert 100 * 62 / 84 < figures["accuracy"] <= 100 * 64 / 84
    assert figures["held_out_accuracy"] <= 100 * 72 / 82
    assert f"{held}: 10 of 100 texts with labels that the training texts lack" in made.stderr
    assert f"{test}: 20 of 100 texts with labels that the training texts lack" in made.stderr
    assert "'sea'" in made.stderr
    assert load_head(tmp_path / "head").manifest.labels == ("person", "river")


def test_entities_that_training_lacks_count_as_missed(
    arguments: list[object], tmp_path: Path
) -> None:
    data = sentences(tmp_path / "train.jsonl", 300)
    held = renamed(
        sentences(tmp_path / "held.jsonl", 60, seed=1),
        6,
        tokens=["the", "danube"],
        labels=["O", "B-river"],
    )
    made = invoke(
        "--data", data, "--validation", held, "--kind", "token", "--id", "people",
        "--out", tmp_path / "head", "--json", *arguments,
    )  # fmt: skip
    assert made.exit_code == 0, (made.output, made.exception)
    assert json.loads(made.stdout)["held_out_entity_recall"] <= 90
    assert "6 of 60 texts with labels" in made.stderr


def test_several_labels_that_training_lacks_count_as_missed(
    arguments: list[object], tmp_path: Path
) -> None:
    rows = [{"text": f"the {own} in black", "label": [own]} for own in ("froome", "danube")]
    data = write_lines(tmp_path / "data.jsonl", rows * 60)
    other = {"text": "the danube in black", "label": ["danube", "rises"]}
    held = write_lines(tmp_path / "held.jsonl", [*rows * 4, other, other])
    made = invoke(
        "--data", data, "--validation", held, "--kind", "sequence", "--id", "both", "--multi-label",
        "--out", tmp_path / "head", "--json", *arguments,
    )  # fmt: skip
    assert made.exit_code == 0, (made.output, made.exception)
    assert json.loads(made.stdout)["held_out_label_recall"] <= round(100 * 10 / 12, 2)


def test_texts_to_calibrate_with_must_have_labels_of_training(
    arguments: list[object], tmp_path: Path
) -> None:
    held = renamed(texts(tmp_path / "held.jsonl", 20), 20, label="lake")
    refused = invoke(
        "--data", texts(tmp_path / "train.jsonl"), "--validation", held, "--kind", "sequence",
        "--id", "topic", "--out", tmp_path / "head", *arguments,
    )  # fmt: skip
    assert "or has a label that the training texts lack" in str(refused.exception)


def test_without_a_states_cache_only_the_head_is_written(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    made = invoke(
        "--data", texts(tmp_path / "data.jsonl", 60), "--kind", "sequence", "--id", "topic",
        "--out", "head", "--bundle", bundle.directory, *QUICK, "--epochs", 1,
    )  # fmt: skip
    assert made.exit_code == 0, (made.output, made.exception)
    assert [path.name for path in Path().iterdir()] == ["head"]


def test_the_same_seed_makes_the_same_head_another_seed_another(
    arguments: list[object], tmp_path: Path
) -> None:
    data = texts(tmp_path / "data.jsonl", 60)
    common = ["--data", data, "--kind", "sequence", "--id", "topic", *arguments, "--epochs", 2]
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        made = invoke(*common, "--seed", seed, "--out", tmp_path / name)
        assert made.exit_code == 0, made.output
    one, again, two = (
        load_head(tmp_path / name).manifest.model.sha256 for name in ("one", "again", "two")
    )
    assert one == again != two


def test_an_interruption_leaves_no_head_and_keeps_the_states(
    arguments: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = texts(tmp_path / "data.jsonl", 60)
    command = ["--data", data, "--kind", "sequence", "--id", "topic", "--out", tmp_path / "head"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("models.heads.training._HeadRun.step", interrupted)
        assert invoke(*command, *arguments).exit_code != 0
    assert not (tmp_path / "head").exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*.npy")}
    assert written
    assert invoke(*command, *arguments).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_an_interruption_while_texts_are_encoded_leaves_no_states(
    arguments: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = texts(tmp_path / "data.jsonl", 60)
    command = ["--data", data, "--kind", "sequence", "--id", "topic", "--out", tmp_path / "head"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("models.heads.states.track", interrupted)
    assert invoke(*command, *arguments).exit_code != 0
    assert list((tmp_path / "work" / "states").iterdir()) == []
    assert not (tmp_path / "head").exists()


def test_a_head_that_loses_too_much_in_int8_stays_in_float32(
    arguments: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = iter([90.0, 80.0])
    monkeypatch.setattr("models.heads.making.main_figure", lambda *_: next(figures))
    made = invoke(
        "--data", texts(tmp_path / "data.jsonl", 60), "--kind", "sequence", "--id", "topic",
        "--out", tmp_path / "head", *arguments, "--epochs", 1,
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    assert load_head(tmp_path / "head").manifest.provenance["precision"] == "fp32"


def test_a_head_is_refused_by_a_store_of_another_encoder(
    arguments: list[object], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tiny_bundle(tmp_path_factory.mktemp("others"), "other", num_hidden_layers=2)
    data = texts(tmp_path / "data.jsonl", 60)
    command = ["--data", data, "--kind", "sequence", *arguments, "--epochs", 1]
    assert invoke(*command, "--id", "one", "--out", tmp_path / "one").exit_code == 0
    command += ["--bundle", other.directory]
    assert invoke(*command, "--id", "two", "--out", tmp_path / "two").exit_code == 0
    store = open_store(tmp_path / "store")
    store.publish(tmp_path / "one")
    with pytest.raises(IdentityError):
        store.publish(tmp_path / "two")


def test_a_directory_with_files_is_not_overwritten(arguments: list[object], tmp_path: Path) -> None:
    data = write_lines(tmp_path / "data.jsonl", [{"text": "a", "label": "b"}])
    refused = invoke(
        "--data", data, "--kind", "sequence", "--id", "topic", "--out", tmp_path, *arguments
    )
    assert refused.exit_code == 1
    assert "already exists" in str(refused.exception)


@pytest.mark.parametrize("place", ["--out", "--work"])
def test_a_directory_below_a_file_is_named(
    place: str, arguments: list[object], tmp_path: Path
) -> None:
    data = texts(tmp_path / "data.jsonl", 60)
    command = ["--data", data, "--kind", "sequence", "--id", "topic", "--out", tmp_path / "head"]
    refused = invoke(*command, *arguments, place, data / "below")
    assert refused.exit_code == 1
    assert isinstance(refused.exception, WinnowError)
    assert f"cannot write to {data}" in str(refused.exception)


def test_an_exported_bundle_names_its_states(bundle: Bundle) -> None:
    """The mean of the states points where the vector does, since that is how it is pooled."""
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special, states=True)
    vector, states = encoder.with_states(tokenizer.tokenise("who won the tour").ids)
    assert states is not None
    mean = states.astype(np.float32).mean(0)
    assert np.allclose(mean / np.linalg.norm(mean), vector, atol=1e-2)
