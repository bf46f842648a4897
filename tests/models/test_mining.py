"""Tests of training questions and their hard negatives."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.data import DataError, Passage, Question, contains_answer
from models.mining.embedding import Embedder
from models.mining.held_out import exclude_questions
from models.mining.mine import (
    TrainingQuestion,
    load_mined,
    mine_negatives,
    nearest_rows,
    save_mined,
)
from models.network.architecture import Encoder, load_body
from models.network.export import export_graph
from models.steps.calibration import Calibration
from models.workspace import Workspace
from winnow.bundle import Bundle


@pytest.fixture(scope="module")
def embedder(tiny_weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    graph = tmp_path_factory.mktemp("graph") / "encoder.onnx"
    export_graph(Encoder(load_body(tiny_weights)), graph)
    return Embedder(graph, tiny_weights / "tokenizer.json")


def test_no_negative_contains_the_answer_and_the_positive_does(embedder: Embedder) -> None:
    extra = [
        Passage(f"word{n % 40}", f"word{n % 40} in the tour of word{n % 7}") for n in range(60)
    ]
    gold = Passage("Danube", "The Danube rises in the word5")
    question = Question(
        text="where rises the danube",
        answers=("word5",),
        source="a",
        gold=gold,
        answer_start=gold.text.index("word5"),
    )
    passages, mined = mine_negatives([question], extra, embedder)
    assert passages[mined[0].positive] == gold
    assert mined[0].negatives
    assert not any(contains_answer(passages[n], ["word5"]) for n in mined[0].negatives)


def test_neither_case_nor_punctuation_hides_a_question_of_a_development_set() -> None:
    held = [Question(text="Who won the Tour?", answers=(), source="")]
    asked = [
        Question(text="who won tour", answers=(), source=""),
        Question(text="who lost the tour", answers=(), source=""),
    ]
    assert exclude_questions(asked, held) == asked[1:]


def test_exact_search_returns_the_nearest_first() -> None:
    generator = np.random.default_rng(1)
    asked = generator.normal(size=(5, 8)).astype(np.float32)
    vectors = generator.normal(size=(50, 8)).astype(np.float32)
    expected = np.argsort(-(asked @ vectors.T), axis=1)[:, :7]
    np.testing.assert_array_equal(nearest_rows(asked, vectors, 7), expected)


def test_a_vector_does_not_depend_on_its_neighbours(embedder: Embedder) -> None:
    texts = ["who won the tour", "where"]
    np.testing.assert_array_equal(embedder.questions(texts)[:1], embedder.questions(texts[:1]))


def test_vectors_are_cached_by_their_passages(
    embedder: Embedder, tiny_weights: Path, tmp_path: Path
) -> None:
    graph = tmp_path / "encoder.onnx"
    export_graph(Encoder(load_body(tiny_weights)), graph)
    keeping = Embedder(graph, tiny_weights / "tokenizer.json", cache=tmp_path / "vectors")
    passages = [Passage("word1", "in the tour"), Passage("word2", "of the danube")]
    first = keeping.passages(passages)
    np.testing.assert_array_equal(first, embedder.passages(passages))
    np.testing.assert_array_equal(keeping.passages(passages), first)
    assert len(list((tmp_path / "vectors").iterdir())) == 1
    assert not np.array_equal(keeping.passages(passages[::-1]), first)


def test_vectors_whose_writing_was_interrupted_are_made_again(
    embedder: Embedder, tiny_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = tmp_path / "encoder.onnx"
    export_graph(Encoder(load_body(tiny_weights)), graph)
    keeping = Embedder(graph, tiny_weights / "tokenizer.json", cache=tmp_path / "vectors")
    passages = [Passage("word1", "in the tour")]

    def interrupted(place: Any, vectors: Any) -> None:
        if isinstance(place, Path):
            place.write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(np, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            keeping.passages(passages)
    np.testing.assert_array_equal(keeping.passages(passages), embedder.passages(passages))


def test_damaged_vectors_are_made_again_with_a_warning(
    embedder: Embedder, tiny_weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = tmp_path / "encoder.onnx"
    export_graph(Encoder(load_body(tiny_weights)), graph)
    keeping = Embedder(graph, tiny_weights / "tokenizer.json", cache=tmp_path / "vectors")
    passages = [Passage("word1", "in the tour")]
    wanted = keeping.passages(passages)
    [file] = (tmp_path / "vectors").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:-8])
    np.testing.assert_array_equal(keeping.passages(passages), wanted)
    assert f"{file} is damaged" in capsys.readouterr().err
    assert file.read_bytes() == content


class LengthSession:
    """Encodes a sequence as its length, the sum of its token types, and the graph's name."""

    def __init__(self, graph: str, *_: object, **__: object) -> None:
        self.is_for_questions = graph.endswith("questions.onnx")

    def run(self, names: list[str], feed: dict[str, Any]) -> list[Any]:
        tokens, types = feed["input_ids"].size, feed["token_type_ids"].sum()
        return [np.array([[tokens, types, self.is_for_questions]], np.float32)]


def test_calibration_encodes_with_the_encoders_and_limits_of_the_bundle(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnxruntime.InferenceSession", LengthSession)
    calibration = Calibration(Workspace(tmp_path), bundle.directory, print)
    title_and_text = Passage("Danube", "The Danube rises in the Black Forest, and is long.")

    def embedder(**changes: object) -> Embedder:
        encoder = bundle.manifest.encoder.model_copy(update=changes)
        manifest = bundle.manifest.model_copy(update={"encoder": encoder})
        return calibration.embedder(replace(bundle, manifest=manifest))

    own = embedder(question="questions.onnx", max_question_tokens=5, passage_token_types=(1, 2))
    assert own.questions(["Where does the Danube rise, and where does it end?"]).tolist() == [
        [5, 0, 1]
    ]
    for limit in (9, 12):  # the cache keeps them apart
        own = embedder(max_passage_tokens=limit, passage_token_types=(1, 2))
        [[tokens, types, is_for_questions]] = own.passages([title_and_text]).tolist()
        title_tokens = 2 * tokens - types
        assert (tokens, is_for_questions) == (limit, 0)
        assert title_tokens == 3


def test_another_tokenizer_makes_other_vectors(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnxruntime.InferenceSession", LengthSession)
    tokenizer = tmp_path / "tokenizer.json"
    shutil.copyfile(bundle.tokenizer, tokenizer)
    for ending in ("", "\n"):
        tokenizer.write_text(tokenizer.read_text() + ending)
        Embedder(bundle.passage_encoder, tokenizer, tmp_path / "v").passages([Passage("", "a")])
    assert len(list((tmp_path / "v").iterdir())) == 2


@pytest.mark.parametrize(
    ("directory", "command"),
    [("mined", "mine"), ("ranked", "mine-ranking"), ("clozes", "mine-clozes")],
)
def test_missing_questions_are_named_with_the_command_that_mines_them(
    tmp_path: Path, directory: str, command: str
) -> None:
    with pytest.raises(DataError, match=f"run `winnow models {command}` first"):
        load_mined(tmp_path / directory)


@pytest.mark.parametrize("written", range(4))
def test_an_interrupted_save_leaves_no_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    old, new = [Passage("a", "a")], [Passage("b", "b"), Passage("c", "c")]
    questions = [
        TrainingQuestion(
            question="a?", answer="a", answer_start=0, source="a", positive=0, negatives=()
        )
    ]
    save_mined(tmp_path, old, questions)
    rows = iter(range(written))

    def dumped(row: object, **_: object) -> str:
        if next(rows, None) is None:
            raise KeyboardInterrupt
        return json.dumps(row)

    with monkeypatch.context() as patched:
        patched.setattr("models.mining.mine.json.dumps", dumped)
        with pytest.raises(KeyboardInterrupt):
            save_mined(tmp_path, new, [*questions, *questions])
    with pytest.raises(DataError):
        load_mined(tmp_path)


def test_damaged_questions_are_named_with_the_command_that_mines_them(tmp_path: Path) -> None:
    question = TrainingQuestion(
        question="a?", answer="a", answer_start=0, source="a", positive=0, negatives=()
    )
    save_mined(tmp_path, [Passage("a", "a")], [question])
    file = tmp_path / "questions.jsonl"
    file.write_text(file.read_text()[:-30])
    with pytest.raises(
        DataError, match=f"{file} is damaged in line 1: run `winnow models mine` again"
    ):
        load_mined(tmp_path)


def test_saved_questions_are_loaded(tmp_path: Path) -> None:
    passages = [Passage("Łódź", "a 🎻\tand\nmore"), Passage("", "b")]
    questions = [
        TrainingQuestion(
            question="wer?",
            answer="🎻",
            answer_start=2,
            source="a",
            positive=0,
            negatives=(1,),
            others=("violin", "Łódź"),
        ),
        TrainingQuestion(
            question="b?", answer="b", answer_start=0, source="b", positive=1, negatives=()
        ),
    ]
    save_mined(tmp_path, passages, questions)
    assert load_mined(tmp_path) == (passages, questions)
