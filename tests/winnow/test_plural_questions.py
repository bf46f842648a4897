"""Questions that ask for several things."""

import pytest

from winnow.text.surroundings import asks_for_several


@pytest.mark.parametrize(
    "question",
    [
        "What are the priorities of a package?",
        "which are the archive areas",
        "In which are they?",
        "Which packages must be installed?",
        "What kinds of priorities exist?",
        "Which kinds of alcohol may be added?",
        "Which two characters replace it?",
        "For which architectures does Debian exist?",
        "List the priorities.",
        "Please name the three archive areas",
        "Name all planets",
        "Who were the first presidents?",
    ],
)
def test_a_question_in_the_plural_asks_for_several(question: str) -> None:
    assert asks_for_several(question)


@pytest.mark.parametrize(
    "question",
    [
        "What is lintian?",
        "Which package does it need?",
        "What is of interest?",
        "What process of Debian needs it?",
        "What does the class do?",
        "What process does it use?",
        "Who wrote the list of priorities?",
        "In what country were the Normans?",
        "How many are there?",
        "",
    ],
)
def test_a_question_in_the_singular_asks_for_one(question: str) -> None:
    assert not asks_for_several(question)
