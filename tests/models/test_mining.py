"""Tests of training questions and their hard negatives."""

import json
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
