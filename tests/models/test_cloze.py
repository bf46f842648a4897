"""Tests of cloze questions: how they are made, and how training uses them."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import zstandard
from hypothesis import assume, given
from hypothesis import strategies as st

from models.data import DataDirectory, DataError, Passage
from models.mining.cloze import Cloze, make_cloze
from models.mining.mine import TrainingQuestion, load_mined, merge_mined, save_mined
from models.steps import clozes
from models.steps.clozes import CLOZES, add_cloze_passes, mine_clozes
from models.steps.mining import load_training
from models.workspace import Workspace
from winnow.bundle import load_bundle
from winnow.domain.passage import Passage as Stored
from winnow.domain.reading import Reading
from winnow.packaged import default_bundle

TOWN = Passage(
    "Ravna",
    "of the old road. The stone bridge over the river was built by Ada Lovelace in 1871 for 300 "
    "gold coins. It became the seat of the regional council when the war was over. Bo left.",
)
SEEDS = range(200)


def every(passage: Passage) -> list[Cloze]:
    found = [make_cloze(passage, random.Random(seed)) for seed in SEEDS]
    return [each for each in found if each is not None]


WORDS = ["bridge", "Bo", "of", "the", "in", "was", "1871", "U.S.", "seven", "(", "Ravna", "stood,"]
sentences = st.lists(st.sampled_from(WORDS), min_size=6, max_size=20).map(
    lambda words: f"Once {' '.join(words)} the council."
)


@given(st.lists(sentences, min_size=1, max_size=4).map(" ".join), st.integers())
def test_a_cloze_answer_is_in_the_passage_and_not_in_the_question(text: str, seed: int) -> None:
    found = make_cloze(Passage("Ravna", text), random.Random(seed))
    assume(found is not None)
    assert found is not None
    assert found.answer
    assert found.answer in text
    assert found.answer.lower() not in found.question.lower()
    assert found.question.strip() == found.question


@given(st.text())
def test_odd_texts_are_accepted(text: str) -> None:
    make_cloze(Passage(text, text), random.Random(0))


def test_dates_numbers_names_and_nouns_have_their_question_words() -> None:
    asked = {(each.answer, word) for each in every(TOWN) for word in each.question.split()}
    wanted = {("1871", "when"), ("300", "many"), ("Ada Lovelace", "who"), ("seat", "what")}
    assert wanted <= {(answer, word.strip("?")) for answer, word in asked}


def test_a_phrase_that_its_question_contains_is_not_used() -> None:
    """The title takes a pronoun's place."""
    text = "She was known to all of the town as Ada Lovelace, and Bo was called Bo by Cy Coleman."
    answers = {each.answer for each in every(Passage("Ada Lovelace", text))}
    assert answers == {"Cy Coleman"}


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("Over the river there stand two towers that nobody ever saw.", {"two"}),
        ("In Paris John was seen by the men who built the road.", {"men", "road"}),
        ("The value is about 0.1871 if all of them are counted.", {"0.1871"}),
        ("Many of them were born in St. Louis and went to war.", {"St. Louis"}),
        ("Bo of the Society of the Friends.", set()),
    ],
)
def test_a_cloze_answer_is_a_separate_phrase(text: str, answers: set[str]) -> None:
    assert {each.answer for each in every(Passage("", text))} == answers


def test_a_pronoun_becomes_the_title_of_the_passage() -> None:
    asked = [each.question for each in every(TOWN) if "council" in each.question]
    assert asked
    assert not any("It " in question for question in asked)
    assert any("Ravna" in question for question in asked)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Bo left.",
        "without its beginning the sentence says who mapped the town in 1871.",
        "The sentence without its end says that the town was mapped by Ada Lovelace in",
        "All of this has been said so often that one can hardly bear to hear it again.",
    ],
)
def test_a_passage_without_a_suitable_sentence_has_no_question(text: str) -> None:
    assert every(Passage("Ravna", text)) == []


def test_the_same_seed_makes_the_same_question() -> None:
    assert every(TOWN) == every(TOWN)


def write(path: Path, rows: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstandard.compress("".join(f"{row}\n" for row in rows).encode()))


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    """Six passages with one sentence each, one of them of an article that is measured on, which its
    set spells otherwise.
    """
    texts = {
        "Ravna": "The long bridge over the river was built by Ada Lovelace for the council.",
        "Bridges": "Ada Lovelace built the bridge over the long river, says the council.",
        "Rivers": "The river under the bridge is long and built upon by the council of Bo.",
        "Hidden": "The long bridge over the hidden river was built by Cy Coleman for the council.",
        "Councils": "The council over the river has built nothing, says the long report.",
        "Long": "The long river was over when the council had the bridge built.",
    }
    rows = [f"{n}\t{text}\t{title}" for n, (title, text) in enumerate(texts.items())]
    write(tmp_path / "passages" / "wiki2015.tsv.zst", rows)
    gold = {"question": "Who?", "answer": "Cy", "title": "hidden", "context": "Cy."}
    write(tmp_path / "qa" / "dev-squad.jsonl.zst", [json.dumps(gold)])
    write(tmp_path / "qa" / "dev-nq.jsonl.zst", [])
    return DataDirectory(tmp_path)


class Finding:
    """Finds one phrase wherever it is, in the articles it is told of, and nothing elsewhere."""

    def __init__(self, phrase: str, articles: set[str]) -> None:
        self._phrase, self._articles = phrase, articles

    def read_all(self, work: Sequence[tuple[str, Passage, float]], what: str) -> list[Reading]:
        return [self._read(passage) for _, passage, _ in work]

    def _read(self, passage: Passage) -> Reading:
        start = passage.text.find(self._phrase) if passage.title in self._articles else -1
        end = start + len(self._phrase) if start >= 0 else 0
        stored = Stored("", passage.title, passage.text)
        return Reading(
            passage=stored,
            start=max(start, 0),
            end=end,
            score=0,
            relevance=0,
            span_score=0,
            distance=0,
            hybrid_distance=0,
        )


def mined(
    data: DataDirectory, reader: Finding, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Passage], list[TrainingQuestion]]:
    monkeypatch.setattr(clozes, "OfflineReader", lambda **_: reader)
    work = Workspace(data.root / "work").create()
    count = mine_clozes(data, load_bundle(default_bundle()), work, 100)
    passages, questions = load_mined(work.cloze_questions)
    assert count == len(questions)
    return passages, questions


@pytest.mark.parametrize(("found_in", "taken"), [("Bridges", "Bridges"), ("Ravna", "Ravna")])
def test_the_positive_is_another_passage_if_the_reader_answers_from_it(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch, found_in: str, taken: str
) -> None:
    monkeypatch.setattr(
        clozes, "make_cloze", lambda passage, _: ASKED if passage.title == "Ravna" else None
    )
    passages, (question,) = mined(data, Finding("Ada Lovelace", {found_in}), monkeypatch)
    positive = passages[question.positive]
    assert positive.title == taken
    assert positive.text[question.answer_start :].startswith("Ada Lovelace")
    assert question.source == CLOZES
    negatives = [passages[number] for number in question.negatives]
    assert negatives
    assert not any("Ada Lovelace" in each.text for each in negatives)
    assert "Hidden" not in {each.title for each in passages}


ASKED = Cloze("who built the long bridge over the river for the council?", "Ada Lovelace")


def test_a_question_that_the_reader_cannot_answer_is_left_out(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mined(data, Finding("Ada Lovelace", set()), monkeypatch)[1] == []


def test_held_out_and_development_articles_have_no_cloze_questions(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(clozes, "make_cloze", lambda passage, _: asked.append(passage.title))
    monkeypatch.setattr(clozes, "is_held_out", lambda passage: passage.title == "Long")
    mined(data, Finding("", set()), monkeypatch)
    assert sorted(asked) == ["Bridges", "Councils", "Ravna", "Rivers"]


def test_cloze_questions_follow_the_real_ones_with_their_passages(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, clozed = mined(data, Finding("Ada Lovelace", {"Ravna", "Bridges"}), monkeypatch)
    real = TrainingQuestion(
        question="Who?", answer="Bo", answer_start=0, source="squad", positive=0, negatives=(1,)
    )
    passages, questions = merge_mined(
        [Passage("A", "Bo."), Passage("B", "")], [real], every, clozed
    )
    assert questions[0] == real
    assert len(questions) == 1 + len(clozed)
    for before, after in zip(clozed, questions[1:], strict=True):
        assert passages[after.positive] == every[before.positive]
        assert [passages[n] for n in after.negatives] == [every[n] for n in before.negatives]


def test_training_uses_cloze_questions_only_with_passes_over_them(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And held-out articles are held out with or without them."""
    passages = [Passage("A", "Bo."), Passage("Held", "Bo.")]
    real = [
        TrainingQuestion(
            question="Who?",
            answer="Bo",
            answer_start=0,
            source="squad",
            positive=place,
            negatives=(1 - place,),
        )
        for place in (0, 1)
    ]
    work = Workspace(data.root / "work")
    save_mined(work.mined_questions, passages, real)
    monkeypatch.setattr("models.mining.mine.is_held_out", lambda passage: passage.title == "Held")
    assert load_training(work.mined_questions, work, add_cloze_passes({"squad": 1.0}, 0.0)) == (
        passages,
        real[:1],
    )
    with pytest.raises(DataError, match="mine-clozes"):
        load_training(work.mined_questions, work, add_cloze_passes({"squad": 1.0}, 0.5))
    monkeypatch.setattr(
        clozes, "make_cloze", lambda passage, _: ASKED if passage.title == "Ravna" else None
    )
    mined(data, Finding("Ada Lovelace", {"Ravna"}), monkeypatch)
    _, learnt = load_training(work.mined_questions, work, add_cloze_passes({"squad": 1.0}, 0.5))
    assert [question.source for question in learnt] == ["squad", CLOZES]
