"""What a merge says to its node."""

import pytest

from winnow.content_node.merging.protocol import (
    Heard,
    Merged,
    MergeFailed,
    MergeStage,
    Said,
    of_line,
    to_line,
)

SAID = [
    MergeStage("graph"),
    MergeFailed("no room: “disk”\nfull"),
    Merged(directory="live/x", sequence=2**53, passages=4, rows=5, without_states="no room"),
]


@pytest.mark.parametrize("said", SAID)
def test_what_is_said_is_one_line_and_heard_as_it_was(said: Said) -> None:
    line = to_line(said)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert of_line(line) == said


@pytest.mark.parametrize(
    "line",
    ["", "Traceback:", "[]", "3", "null", "{}", '{"a": 1}', '{"merged": {}}', '{"stage": 3}',
     '{"stage": {"name": "x"}, "failed": {"reason": "y"}}', "[" * 100_000],
)  # fmt: skip
def test_anything_else_is_nothing_said(line: str) -> None:
    assert of_line(line) is None


def test_the_last_lines_that_were_nothing_said_are_the_last_words() -> None:
    heard = Heard()
    assert heard.line(to_line(MergeStage("graph"))) == MergeStage("graph")
    for number in range(30):
        assert heard.line(f"line {number}\n") is None
    assert heard.result is None
    assert heard.last_words == "".join(f"\nline {number}" for number in range(10, 30))
