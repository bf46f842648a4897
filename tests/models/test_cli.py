"""Tests of making bundles by the commands, with a tiny model on a synthetic corpus."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import zstandard
from conftest import Recorder
from typer.testing import CliRunner, Result
from whole_bundle import WHOLE

from models.assemble import amend_manifest
from models.cli import app
from models.data import DataError
from models.network.architecture import mean_weights
from models.steps.mining import is_mined
from models.steps.split_reader import trained_split_reader
from models.steps.training import MEMBERS
from models.training import checkpoint
from models.workspace import Workspace
from winnow.bundle import load_bundle, read_manifest
from winnow.bundle.manifest import LateInteractionEntry
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.errors import WinnowError

SUBJECTS = 60

pytestmark = pytest.mark.timeout(400)


def fact(number: int) -> tuple[str, str, str]:
    """Title, text and answer."""
    answer = f"word{number * 7 % 40}"
    return (
        f"tour {number}",
        f"In the tour of {number} , {answer} won in the danube in {1900 + number % 5} .",
        answer,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in the layout of the public data."""
    root = tmp_path_factory.mktemp("data")
    gold: list[dict[str, object]] = []
    held: list[dict[str, object]] = []
    pairs: list[dict[str, object]] = []
    wikipedia: list[str] = []
    for number in range(SUBJECTS):
        title, text, answer = fact(number)
        row = {"title": title, "context": text, "question": f"who won the tour of {number} ?"}
        if number % 3 == 0:
            held.append({**row, "answers": [answer]})
        else:
            place = text.index(answer)
            gold.append({**row, "answer": answer, "answer_start": place, "source": "squad"})
        pairs.append(
            {"source": "dpr-nq.dev", "question": f"what won {number}", "answers": [answer]}
        )
        wikipedia.append(f"{number}\t{text}\t{title}\n")
    for name, rows in {
        "reader-train": gold,
        "pairs-train": pairs,
        "dev-squad": held,
        "dev-nq": held,
    }.items():
        write(root / "qa" / f"{name}.jsonl.zst", "".join(json.dumps(row) + "\n" for row in rows))
    write(root / "passages" / "wiki2015.tsv.zst", "".join(wikipedia))
    return root


def write(path: Path, content: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zstandard.ZstdCompressor().compress(content.encode()))


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def phrases(text: str) -> list[str]:
    """All phrases of a text: a reader that learnt for seconds finds some of them."""
    words = text.split()
    return [
        " ".join(words[first:end])
        for first in range(len(words))
        for end in range(first + 1, len(words) + 1)
    ]


def collection_of(data: Path, bundle: Path, directory: Path) -> Path:
    """An index of all facts, with questions about some of them and a question without an answer."""
    rows = [fact(number) for number in range(SUBJECTS)]
    questions = [
        {"question": f"who won the {title} ?", "answers": phrases(text), "sentence": text}
        for title, text, _ in rows[::3]
    ]
    questions.append({"question": "who won ?", "answers": [], "sentence": ""})
    manifest = read_manifest(bundle)
    tiny = manifest.encoder.model_copy(update={"dimension": 16})  # `assemble` writes MiniLM's
    amend_manifest(bundle, encoder=tiny.model_dump())
    directory.mkdir()
    lines = (json.dumps(question) + "\n" for question in questions)
    (directory / "questions.jsonl").write_text("".join(lines))
    passages = directory / "passages.tsv"
    passages.write_text(
        "".join(f"{n}\t{text}\t{title}\n" for n, (title, text, _) in enumerate(rows))
    )
    build_index(
        BuildPlan(source=passages, target=directory / "index", shards=1, threads=1),
        load_bundle(bundle),
        Recorder(),
    )
    return directory


def alter(run: Path) -> None:
    """The graphs of a run would not have its weights."""
    state = checkpoint.load(run)
    assert state is not None
    state["network"]["span.bias"] = state["network"]["span.bias"] + torch.ones(2)
    checkpoint.save(run, state)


def test_a_bundle_and_a_ladder_are_built_and_resumed(
    data: Path, weights: Path, tmp_path: Path
) -> None:
    work, bundle = tmp_path / "work", tmp_path / "bundle"
    arguments = ["build", "--weights", weights, "--work", work, "--data", data]
    arguments += ["--bundle", bundle, "--extra", 60, "--scale", 60, "--max-loss", 100]
    built = invoke(*arguments)
    assert built.exit_code == 0, built.output
    provenance = read_manifest(bundle).provenance
    assert provenance["encoder"]["steps"] > 0
    seeds = [run["plan"]["seed"] for run in provenance["readers"]]
    assert seeds == list(range(1, MEMBERS + 1))
    assert all(run["steps"] > 0 for run in provenance["readers"])

    mined = (work / "mined" / "questions.jsonl").stat().st_mtime_ns
    fingerprint = read_manifest(bundle).fingerprint
    again = invoke(*arguments)
    assert again.exit_code == 0, again.output
    assert (work / "mined" / "questions.jsonl").stat().st_mtime_ns == mined
    assert read_manifest(bundle).fingerprint == fingerprint

    out = tmp_path / "ladder"
    climbed = ["ladder", "--weights", weights, "--work", work, "--data", data, "--bundle", bundle]
    made = invoke(*climbed, "--out", out, "--reader", 1, "--encoder", 1, "--scale", 4)
    assert made.exit_code == 0, made.output
    manifests = [load_bundle(directory).manifest for directory in sorted(out.iterdir())]
    assert (
        len(manifests) == 9
    )  # two readers; of each all that `ladder_bundles` says, of the small one its own
    whole = read_manifest(bundle)
    assert {each.encoding_fingerprint for each in manifests} == {whole.encoding_fingerprint}
    assert len({each.fingerprint for each in manifests}) == len(manifests)


@pytest.mark.parametrize("names", [("a", "b/a"), ("wikipedia",)])
def test_kinds_of_text_have_different_names(names: tuple[str, ...], tmp_path: Path) -> None:
    """Reports and files of scores name them."""
    given = [part for name in names for part in ("--documents", tmp_path / name)]
    refused = invoke("calibrate", "--work", tmp_path, *given)
    assert refused.exit_code == 2
    assert "two kinds of text have the same name" in " ".join(refused.output.split())


def test_a_collection_without_answers_is_refused(tmp_path: Path) -> None:
    lines = json.dumps({"question": "Who?", "answers": [], "sentence": ""}) + "\n"
    (tmp_path / "questions.jsonl").write_text(lines)
    refused = invoke("calibrate", "--work", tmp_path, "--documents", tmp_path)
    assert refused.exit_code == 2
    assert "has answers" in " ".join(refused.output.replace("│", " ").split())


def test_confidences_that_were_never_fitted_cannot_be_kept(tmp_path: Path) -> None:
    bundle = shutil.copytree(WHOLE, tmp_path / "bundle")
    refused = invoke("calibrate", "--bundle", bundle, "--work", tmp_path, "--keep-confidences")
    assert refused.exit_code == 2
    assert "leave out --keep-confidences" in " ".join(refused.output.split())


def test_confidences_are_kept_only_if_all_were_fitted(tmp_path: Path) -> None:
    bundle = shutil.copytree(WHOLE, tmp_path / "bundle")
    score = read_manifest(bundle).score.model_copy(update={"sentence_confidence": None})
    late = LateInteractionEntry(file="tokenizer.json", values=8, words=0, tokens=0, score=score)
    amend_manifest(bundle, late_interaction=late.model_dump())
    refused = invoke("calibrate", "--bundle", bundle, "--work", tmp_path, "--keep-confidences")
    assert refused.exit_code == 2
    assert "leave out --keep-confidences" in " ".join(refused.output.split())


def test_a_result_that_cannot_be_written_is_noticed_first(tmp_path: Path) -> None:
    (tmp_path / "candidates-wikipedia.npz").mkdir()
    refused = invoke("calibrate", "--bundle", WHOLE, "--work", tmp_path)
    assert isinstance(refused.exception, WinnowError)
    assert "cannot write" in str(refused.exception)
    assert not (WHOLE / "bundle.json.partial").exists()


def test_the_commands_make_a_bundle_and_refuse_one_that_lost_its_graph(
    data: Path, weights: Path, tmp_path: Path
) -> None:
    work, bundle = tmp_path / "work", tmp_path / "bundle"
    places = ["--weights", weights, "--work", work]

    mined = invoke("mine", *places, "--data", data, "--extra", 60)
    assert mined.exit_code == 0, mined.output
    held = {f"who won the tour of {number} ?" for number in range(0, SUBJECTS, 3)}
    lines = (work / "mined" / "questions.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    assert asked
    assert not held & {row["question"] for row in asked}

    trained = invoke(
        "train-reader", *places, "--questions", 2, "--scale", 4, "--rate", 0.01, "--members", 1
    )
    assert trained.exit_code == 0, trained.output
    assembled = invoke("assemble", *places, "--bundle", bundle)
    assert assembled.exit_code == 0, assembled.output
    calibrated = invoke("calibrate", "--bundle", bundle, "--work", work)
    assert calibrated.exit_code == 0, calibrated.output
    assert "no answer below" in calibrated.output
    collection = collection_of(data, bundle, tmp_path / "collection")
    calibrated = invoke("calibrate", "--bundle", bundle, "--work", work, "--documents", collection)
    assert calibrated.exit_code == 0, calibrated.output
    assert "collection, fitted: exact match" in calibrated.output
    score = read_manifest(bundle).score
    assert score.words is not None
    assert score.min_confidence is not None
    assert score.sentence_confidence is not None
    before = json.loads((bundle / "bundle.json").read_text())
    amend_manifest(bundle, text_relevance=None)
    fitted = invoke("calibrate-texts", "--bundle", bundle, "--work", work)
    assert fitted.exit_code == 0, fitted.output
    assert "Wikipedia, relevance of texts" in fitted.output
    after = json.loads((bundle / "bundle.json").read_text())
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"text_relevance", "checksum"}
    measured = invoke("measure", "--bundle", bundle, "--work", work, "--data", data)
    assert measured.exit_code == 0, measured.output

    manifest = read_manifest(bundle)
    assert load_bundle(bundle).reader.is_file()
    assert set(manifest.accuracy["gold"]) == {"dev-squad", "dev-nq"}
    (run,) = manifest.provenance["readers"]
    assert run["steps"] > 0

    gate = ["verify", "--bundle", bundle, *places, "--data", data, "--max-loss", 100, "--json"]
    passed = invoke(*gate)
    assert passed.exit_code == 0, passed.output
    assert json.loads(passed.stdout)["faults"] == []

    alter(work / "reader.pt")
    refused = invoke(*gate)
    assert refused.exit_code == 1
    assert "reader's ONNX graph differs" in json.loads(refused.stdout)["faults"][0]


def whole_and_mined(data: Path, weights: Path, directory: Path) -> Path:
    """A bundle at `directory / "whole"`, and a workspace with questions for its students."""
    first, work = directory / "first", directory / "work"
    mined = invoke("mine", "--weights", weights, "--work", first, "--data", data, "--extra", 60)
    assert mined.exit_code == 0, mined.output
    trained = invoke("train-reader", "--weights", weights, "--work", first, "--questions", 2)
    assert trained.exit_code == 0, trained.output
    whole = invoke(
        "assemble", "--weights", weights, "--work", first, "--bundle", directory / "whole"
    )
    assert whole.exit_code == 0, whole.output
    work.mkdir()
    shutil.copytree(first / "mined", work / "mined")
    return work


def test_a_split_reader_is_trained_further_from_its_bundle(
    data: Path, weights: Path, tmp_path: Path
) -> None:
    """It learns from the questions of `mine` if those of the served retriever are missing."""
    work, bundle = whole_and_mined(data, weights, tmp_path), tmp_path / "bundle"
    places = ["--weights", weights, "--work", work]
    learn = ["train-apart", *places, "--bundle", tmp_path / "whole", "--layers", 1]
    make = ["assemble", *places, "--apart", 1, "--encoder-of", tmp_path / "whole"]
    for seed, begin in ((1, []), (2, ["--begin-with", bundle])):
        trained = invoke(*learn, "--questions", 2, "--seed", seed, *begin)
        assert trained.exit_code == 0, trained.output
        made = invoke(*make, "--bundle", bundle)
        assert made.exit_code == 0, made.output
        (work / "reader-apart-1.pt").unlink()
    runs = read_manifest(bundle).provenance["apart"]
    assert [run["plan"]["seed"] for run in runs] == [1, 2]
    assert str(tmp_path) not in (bundle / "bundle.json").read_text()
    refused = invoke(*learn, "--begin-with", tmp_path / "whole")
    assert "is a full cross-encoder" in str(refused.exception)


def test_a_split_reader_is_made_in_two_runs_and_a_smaller_one(
    data: Path, weights: Path, tmp_path: Path
) -> None:
    """The reader of a bundle teaches them, and its encoder is copied."""
    work, bundle = whole_and_mined(data, weights, tmp_path), tmp_path / "bundle"
    places = ["--weights", weights, "--work", work]
    shutil.copytree(work / "mined", work / "ranked")

    learn = ["train-apart", *places, "--bundle", tmp_path / "whole", "--layers", 1]
    once = invoke(*learn, "--questions", 2)
    assert once.exit_code == 0, once.output
    (work / "reader-apart-1.pt").rename(work / "begun.pt")
    twice = invoke(
        *learn, "--questions", 2, "--seed", 2, "--begin-with", work / "begun.pt", "--neurons", 6
    )
    assert twice.exit_code == 0, twice.output
    missing = invoke(*learn, "--begin-with", work / "none.pt")
    assert "none.pt is missing or not finished" in str(missing.exception)
    begun = ["--begin-with", work / "begun.pt"]
    other_shape = invoke(*learn, *begun, "--neurons", 5, "--average", "--seed", 3)
    assert "5 neurons in its smallest layer" in str(other_shape.exception)
    alone = invoke(*learn, "--average")
    assert alone.exit_code == 2
    assert "--average needs --begin-with" in alone.output

    halves = ["--apart", 1, "--bundle", bundle]
    made = invoke("assemble", *places, *halves, "--encoder-of", tmp_path / "whole")
    assert made.exit_code == 0, made.output
    runs = read_manifest(bundle).provenance["apart"]
    assert [run["plan"]["seed"] for run in runs] == [1, 2]
    assert str(tmp_path) not in (bundle / "bundle.json").read_text()

    gate = ["verify", *places, *halves, "--data", data, "--max-loss", 100, "--json"]
    passed = invoke(*gate)
    assert passed.exit_code == 0, passed.output
    found = json.loads(passed.stdout)
    assert found["encoder"] is None
    assert set(found["exact_match"]["dev-nq"]) == {"fp32", "int8"}
    alter(work / "reader-apart-1.pt")
    refused = invoke(*gate)
    assert refused.exit_code == 1
    assert "reader's ONNX graph differs" in json.loads(refused.stdout)["faults"][0]

    small = [*places, "--layers", 1]
    taught = invoke("train-reader", *small, "--bundle", tmp_path / "whole", "--questions", 2)
    assert taught.exit_code == 0, taught.output
    other = ["--bundle", tmp_path / "small", "--encoder-of", tmp_path / "whole"]
    made = invoke("assemble", *small, *other)
    assert made.exit_code == 0, made.output
    assert (
        read_manifest(tmp_path / "small").provenance["student"]["plan"]["distilling"]["layers"] == 1
    )
    gate = ["verify", *small, "--bundle", tmp_path / "small", "--data", data, "--max-loss", 100]
    passed = invoke(*gate, "--record")
    assert passed.exit_code == 0, passed.output
    assert set(read_manifest(tmp_path / "small").accuracy["gold"]) == {"dev-squad", "dev-nq"}
    alter(work / "reader-1.pt")
    assert invoke(*gate).exit_code == 1
    both = invoke("assemble", *small, *other, "--apart", 1)
    assert both.exit_code == 2
    assert "--layers or --apart" in " ".join(both.output.replace("│", "").split())


def test_a_reader_may_be_the_mean_of_a_run_and_its_initial_weights(
    data: Path, weights: Path, tmp_path: Path
) -> None:
    """The initial weights may change afterwards."""
    work = whole_and_mined(data, weights, tmp_path)
    run, begun = work / "reader-apart-1.pt", work / "begun.pt"
    learn = ["train-apart", "--weights", weights, "--work", work, "--bundle", tmp_path / "whole"]
    learn = [*learn, "--layers", 1, "--questions", 2]
    assert invoke(*learn).exit_code == 0
    run.rename(begun)
    for _ in range(2):
        averaged = invoke(*learn, "--begin-with", begun, "--average", "--rate", 1e-2)
        assert averaged.exit_code == 0, averaged.output
    first, second = checkpoint.load(begun), checkpoint.load(run)
    assert first is not None
    assert second is not None
    wanted = mean_weights([second["network"], first["network"]])
    begun.unlink()
    torch.testing.assert_close(
        dict(trained_split_reader(weights, Workspace(work), 1).state_dict()), wanted, rtol=0, atol=0
    )

    del second["mean"]  # as where the run was interrupted before it
    checkpoint.save(run, second)
    with pytest.raises(DataError, match="no averaged weights yet"):
        trained_split_reader(weights, Workspace(work), 1)


def test_ranking_is_recorded_in_the_next_bundle(data: Path, weights: Path, tmp_path: Path) -> None:
    """It begins with the weights in the bundle's graph; another kind of reader is refused."""
    work = whole_and_mined(data, weights, tmp_path)
    places = ["--weights", weights, "--work", work]
    shutil.copytree(work / "mined", work / "ranked")
    learn = ["train-ranking", *places, "--questions", 2, "--negatives", 1]
    ranked = invoke(*learn, "--bundle", tmp_path / "whole")
    assert ranked.exit_code == 0, ranked.output
    other = ["--bundle", tmp_path / "ranked", "--encoder-of", tmp_path / "whole"]
    made = invoke("assemble", *places, *other)
    assert made.exit_code == 0, made.output
    assert read_manifest(tmp_path / "ranked").provenance["ranking"]["steps"] > 0
    (work / "ranking.pt").unlink()
    refused = invoke(*learn, "--bundle", WHOLE)
    assert "has the weights of another network" in str(refused.exception)


def test_questions_whose_writing_was_interrupted_count_as_not_mined(
    data: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Workspace(tmp_path / "work")
    mine = ["mine", "--weights", weights, "--work", work.root, "--data", data, "--extra", 60]
    assert invoke(*mine).exit_code == 0
    assert is_mined(work)

    def interrupted(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("models.steps.mining.save_mined", interrupted)
    assert invoke(*mine).exit_code == 1
    assert not is_mined(work)
