"""Tests of training questions about documents, and of questions with a changed premise."""

import json
import random
from pathlib import Path

import pytest

from models.data import Passage, Question
from models.mining.document_files import (
    CLOZES,
    PEOPLE,
    RULES,
    read_document_passages,
    read_document_questions,
)
from models.mining.manuals import read_manual
from models.mining.premises import PremiseChanger
from models.mining.written import titled_passages, written_questions
from models.steps.documents import make_document_questions
from winnow.documents.document import BlockKind, Document

MANUAL = """LS(1)            User Commands            LS(1)

NAME
       ls - list directory contents

OPTIONS
       -a, --all
              show hidden files, which begin with a dot

       -w     set the width of the output; the default is 80

ENVIRONMENT
       LS_COLORS
              colours of the output

GNU coreutils        September 2022        LS(1)
"""


def asked(document: Document, seed: int) -> dict[str, tuple[str, ...]]:
    passages = titled_passages(document, "ls.man")
    questions = written_questions(document, passages, random.Random(seed))
    return {each.question: each.answers for each in questions}


def test_a_manual_page_has_headings_and_items() -> None:
    document = read_manual(MANUAL, "ls")
    items = [
        document.text[each.start : each.end]
        for each in document.blocks
        if each.kind is BlockKind.LIST_ITEM
    ]
    assert items[0] == "-a, --all: show hidden files, which begin with a dot"
    assert items[1].startswith("-w: set the width")
    assert document.title == "ls"


def test_questions_ask_for_meanings_options_and_defaults() -> None:
    document = read_manual(MANUAL, "ls")
    found = {
        question: answers
        for seed in range(20)
        for question, answers in asked(document, seed).items()
    }
    assert ("show hidden files",) in found.values()
    assert ("--all", "-a") in found.values()
    assert ("80",) in found.values()
    assert ("LS_COLORS",) in found.values()
    assert all("{" not in question for question in found)


def test_the_first_answer_is_where_the_question_says() -> None:
    document = read_manual(MANUAL, "ls")
    passages = titled_passages(document, "ls.man")
    for each in written_questions(document, passages, random.Random(1)):
        assert each.passage.text[each.start :].startswith(each.answers[0])
        assert each.source in (RULES, CLOZES)


def question(text: str, passage: str, title: str = "Tour de France") -> Question:
    return Question(text=text, answers=("x",), source="squad", gold=Passage(title, passage))


@pytest.mark.parametrize(
    ("text", "passage", "kept", "gone"),
    [
        ("Who won the race in 1998?", "In 1998 Pantani won.", "Who won the race in", "1998"),
        ("who led after 12 stages", "After 12 stages he led.", "who led after", "12"),
        ("Where was Marco Pantani born?", "Marco Pantani was born in", "Where was", "Pantani"),
        ("where was marco pantani born", "He, Marco Pantani, was", "where was", "pantani"),
        ("What does --all do?", "--all: show hidden files", "What does", "--all"),
    ],
)
def test_a_changed_premise_is_neither_in_question_nor_passage(
    text: str, passage: str, kept: str, gone: str
) -> None:
    changer = PremiseChanger(random.Random(3))
    changer.learn_names(["Bernard Hinault", "the mayor of Jan Ullrich"])
    changer.learn_terms(["What does --recursive do?"])
    changed = changer.change(question(text, passage))
    assert changed is not None
    assert changed.startswith(kept)
    assert gone not in changed


def test_a_question_without_a_premise_is_left_alone() -> None:
    changer = PremiseChanger(random.Random(3))
    assert changer.change(question("when did it begin", "it began long ago", "")) is None


def test_peoples_questions_get_the_place_of_their_answer(tmp_path: Path) -> None:
    rows = [
        {
            "question": "How many stages are there?",
            "answers": ["21 stages"],
            "passage": "There were 21\nstages once. Now there are 21 stages.",
            "sentence": "Now there are 21 stages.",
            "document": "files/tour/rules.txt",
        },
        {
            "question": "Who pays?",
            "answers": [],
            "passage": "Nobody knows.",
            "sentence": "",
            "document": "files/tour/rules.txt",
        },
        {
            "question": "Who won?",
            "answers": ["Pantani"],
            "passage": "Somebody won.",
            "sentence": "Somebody won.",
            "document": "files/tour/rules.txt",
        },
    ]
    people = tmp_path / "people.jsonl"
    people.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = tmp_path / "manuals"
    folder.mkdir()
    (folder / "ls.1.man").write_text(MANUAL)
    counts = make_document_questions([folder], [people], tmp_path / "out")
    assert counts.unplaced == 1
    questions = read_document_questions(tmp_path / "out")
    stages, payer = (each for each in questions if each.source == PEOPLE)
    assert stages.context[stages.answer_start or 0 :] == "21 stages."
    assert (payer.answers, payer.answer_start) == ((), None)
    assert stages.title == "tour \u203a rules"
    passages = read_document_passages(tmp_path / "out")
    assert {Passage(each.title, each.context) for each in questions} <= passages.keys()
    assert counts.questions[RULES] > 0
