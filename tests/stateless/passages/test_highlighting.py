"""Which words of a passage are highlighted."""

import pytest

from winnow.stateless.passages.highlighting import highlights


@pytest.mark.parametrize(
    ("question", "text", "found"),
    [
        ("Who won the Tour de France?", "The Tour of FRANCE was won.", ["Tour", "FRANCE", "won"]),
        ("Łódź café?", "In łódź, a CAFE\u0301.", ["łódź", "CAFE\u0301"]),
        ("What is it?", "It is what it is.", ["It", "is", "what", "it", "is"]),
        ("tour?", "a detour", []),
        ("?", "a text", []),
        ("2015", "In 2015, not 20151.", ["2015"]),
    ],
)
def test_words_of_the_question_are_found_whole_in_any_case_and_with_any_accent(
    question: str, text: str, found: list[str]
) -> None:
    assert [text[start:end] for start, end in highlights(question, text)] == found
