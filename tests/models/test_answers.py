"""Tests of finding answers in passages."""

import pytest

from models.data import Passage, contains_answer, find_answer


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("Danube", ("Danube", 4)),
        ("danube", ("Danube", 4)),
        ("2,850 km", ("2,850 km", 16)),
        ("2 , 850 km", ("2,850 km", 16)),
        ("Dan", None),
        ("850 kmh", None),
        ("", None),
    ],
)
def test_an_answer_has_the_spelling_of_the_passage(answer: str, found: object) -> None:
    text = "The Danube runs 2,850 km to the sea."
    assert find_answer(text, [answer]) == found


def test_the_start_of_an_answer_is_that_of_its_words() -> None:
    text = "Zoë met ZOË — and Zoë's cat."
    words, start = find_answer(text, ["zoë's"]) or ("", -1)
    assert text[start : start + len(words)] == words == "Zoë's"


def test_a_passage_contains_an_answer_in_its_title_or_text() -> None:
    passage = Passage("Black Forest", "The Danube rises here.")
    assert contains_answer(passage, ["black forest"])
    assert contains_answer(passage, ["the Danube!"])
    assert not contains_answer(passage, ["Danube Forest", "rise"])
    assert not contains_answer(passage, ["the", ""])
