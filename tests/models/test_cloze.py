"""Questions out of sentences: what is asked, what is answered, by which passage."""

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from models.data.rows import Passage
from models.mining.cloze import cloze, mine_cloze

TOLD = Passage(
    "Tour de France", "In the hot summer of 2015 the race was won again by Chris Froome."
)
ELSEWHERE = Passage("Chris Froome", "Froome won the race in 2015. Chris Froome rides for Sky.")
WITHOUT = Passage("Bernard Hinault", "He won the race five times and was the last from France.")


def all_clozes(passage: Passage) -> set[tuple[str, str]]:
    found = (cloze(passage, random.Random(seed)) for seed in range(50))
    return {each for each in found if each is not None}


def test_names_and_years_are_asked_for() -> None:
    answers = {answer for _, answer in all_clozes(TOLD)}
    assert answers == {"2015", "Chris Froome"}
    questions = {question for question, answer in all_clozes(TOLD) if answer == "2015"}
    assert questions == {
        "when In the hot summer of the race was won again by Chris Froome Tour de France?"
    }


@given(st.text(max_size=200), st.text(max_size=20), st.integers(0, 5))
def test_any_text_gives_a_question_without_its_answer_or_none(
    text: str, title: str, seed: int
) -> None:
    made = cloze(Passage(title, text), random.Random(seed))
    if made is not None:
        question, answer = made
        assert question.endswith("?")
        assert answer in text


def test_sentences_without_names_or_of_the_wrong_length_ask_nothing() -> None:
    for text in ("Too short 2015.", "it was the one that nobody had ever wanted to be first.", ""):
        assert not all_clozes(Passage("a title", text))


def test_another_passage_answers_and_those_without_the_answer_are_negatives() -> None:
    def search(_question: str, k: int) -> Sequence[Passage]:
        return [WITHOUT, ELSEWHERE][:k]

    passages, asked = mine_cloze([TOLD] * 20, search, seed=0)
    assert asked
    for question in asked:
        text = passages[question.positive].text
        assert passages[question.positive] == ELSEWHERE
        assert text[question.answer_start :].startswith(question.answer)
        assert [passages[n] for n in question.negatives] == [WITHOUT]


def test_a_question_nobody_answers_is_left_out() -> None:
    assert mine_cloze([TOLD] * 5, lambda _question, _k: [WITHOUT], seed=0) == ([], [])
