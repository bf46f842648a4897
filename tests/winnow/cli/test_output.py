"""What commands print: JSON, tables, and the words of passages on a terminal."""

import io
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from winnow.cli.ask.render import highlight_answer
from winnow.cli.output import HIGHLIGHT, printable, table, to_json
from winnow.client import Answer, Passage


def answer(text: str, start: int, end: int) -> Answer:
    return Answer(
        text=text[start:end],
        start=start,
        end=end,
        score=1.0,
        passage=Passage(id="id", title="", text=text),
        shard=0,
    )


PASSAGES = [
    ("The cafe\u0301 was opened by Zoe\u0308 Nowak in 1923.", "Zoe\u0308 Nowak"),
    ("東京タワーは333メートルの高さです。", "333メートル"),
    ("A 🎻 and a 👩‍👩‍👧 and a violin 🎻 case", "violin"),
    ("tabs\tand\r\nreturns\x0band\x0cfeeds, then gold", "gold"),
    ("a bell\a, \x1b[31mred\x1b[0m and \x9b2J then gold", "gold"),
    ("gold", "gold"),
]


@pytest.mark.parametrize(("text", "said"), PASSAGES)
def test_just_the_words_of_the_answer_are_marked(text: str, said: str) -> None:
    start = text.index(said)
    shown = highlight_answer(answer(text, start, start + len(said)), plain=False)
    (span,) = [span for span in shown.spans if span.style == HIGHLIGHT]
    assert shown.plain[span.start : span.end] == said


@pytest.mark.parametrize(("text", "said"), PASSAGES)
@pytest.mark.parametrize("width", [12, 80])
def test_the_words_are_marked_on_a_terminal_of_any_width(text: str, said: str, width: int) -> None:
    start = text.index(said)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=width)
    console.print(highlight_answer(answer(text, start, start + len(said)), plain=False))
    marked = [part.partition("\x1b[0m")[0] for part in out.getvalue().split("\x1b[1;7m")[1:]]
    assert "".join(marked).replace(" ", "") == said.replace(" ", "")


def test_without_styles_asterisks_mark_them() -> None:
    shown = highlight_answer(answer("It was Froome.", 7, 13), plain=True)
    assert (shown.plain, shown.spans) == ("It was **Froome**.", [])


def test_an_answer_without_words_marks_nothing() -> None:
    assert highlight_answer(answer("It was Froome.", 0, 0), plain=True).plain == "It was Froome."


@given(st.text())
def test_harmless_text_keeps_its_length_and_has_no_control_characters(text: str) -> None:
    """The text keeps its code points, and has no control character."""
    shown = printable(text)
    assert len(shown) == len(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)


def test_line_breaks_stay_where_they_are_wanted() -> None:
    assert printable("a\nb\rc") == "a b c"
    assert printable("a\nb\rc", lines=True) == "a\nb c"


@dataclass(frozen=True)
class Measured:
    name: str
    times: tuple[float, ...]
    by_file: dict[str, Answer | None]


def test_a_result_becomes_json_by_its_fields_and_infinity_becomes_null() -> None:
    found = to_json([Measured("p", (1.0, math.inf), {"a": None})])
    assert found == [{"name": "p", "times": [1.0, None], "by_file": {"a": None}}]


def test_a_table_aligns_words_left_and_figures_right() -> None:
    out = io.StringIO()
    made = table(
        ("name", "count", "kind"), [("a", "1", "x"), ("long", "1,000", "y")], words={"kind"}
    )
    Console(file=out, width=60).print(made)
    first, second = (line for line in out.getvalue().splitlines() if "1" in line)
    assert first.index("1") == second.index("1,000") + 4
    assert first.index("x") == second.index("y")
