"""Tests of reading a collection of documents with questions, and of judging its answers."""

from pathlib import Path

import pytest

from models.data import DataError, Passage
from models.measuring.collection import read_collection
from models.measuring.judging import JudgedQuestion
from winnow.errors import ArtefactError

SENTENCE = "The default of --jobs is 4, on all systems."
ASKED = JudgedQuestion(text="What is the default of --jobs?", answers=("4",), sentence=SENTENCE)
ANYWHERE = JudgedQuestion(text="What is the default?", answers=("the /etc/apt",))


@pytest.mark.parametrize(
    ("asked", "sentence", "accepted"),
    [
        (ASKED, SENTENCE, True),
        (ASKED, "--jobs is 4, on all systems.", True),  # a converter may split it otherwise
        (ASKED, "Wait 4 seconds.", False),
        (ASKED, "The default of --jobs depends on all systems.", False),
        (ANYWHERE, "See /etc/apt/sources.list.", True),
        (ANYWHERE, "See apt.", False),
    ],
)
def test_a_sentence_is_right_if_it_has_the_answer_and_is_the_expected_one(
    asked: JudgedQuestion, sentence: str, accepted: bool
) -> None:
    assert asked.accepts_sentence(sentence) is accepted


def test_a_passage_is_right_only_with_the_expected_sentence() -> None:
    assert ASKED.accepts_passage(Passage("make", f"Options. {SENTENCE}"))
    assert not ASKED.accepts_passage(Passage("make", "Wait 4 seconds."))


def test_a_span_is_right_but_for_articles_and_punctuation() -> None:
    assert ANYWHERE.accepts_span("/etc/apt.")
    assert not ANYWHERE.accepts_span("apt")


def test_a_question_without_answers_accepts_nothing() -> None:
    unanswerable = JudgedQuestion(text="Who won?", answers=())
    assert not unanswerable.accepts_span("")
    assert not unanswerable.accepts_sentence(SENTENCE)
    assert not unanswerable.accepts_passage(Passage("", SENTENCE))


def test_the_questions_of_a_collection_are_read(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(
        '{"id": "q1", "question": "Who?", "answers": ["Ada"], "sentence": "Ada did."}\n'
        '{"question": "Why?", "answers": [], "sentence": ""}\n'
    )
    assert read_collection(tmp_path) == [
        JudgedQuestion(text="Who?", answers=("Ada",), sentence="Ada did."),
        JudgedQuestion(text="Why?", answers=()),
    ]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"question": 5}', '{"question": "Who?", "answers": "Ada"}']
)
def test_a_line_that_is_not_a_question_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "questions.jsonl").write_text(f"{line}\n")
    with pytest.raises(ArtefactError, match=r"questions\.jsonl, line 1: "):
        read_collection(tmp_path)


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text("\n")
    with pytest.raises(ArtefactError, match=r"questions\.jsonl has no questions"):
        read_collection(tmp_path)


def test_a_line_ends_only_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "Who\u2028did?", "answers": ["Ada"]}\n')
    assert read_collection(tmp_path) == [JudgedQuestion(text="Who\u2028did?", answers=("Ada",))]


def test_a_directory_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="set --documents"):
        read_collection(tmp_path)
