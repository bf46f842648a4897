"""The line in which a merge process tells its result."""

import pytest

from winnow.content_node.merging.protocol import (
    Merged,
    MergeFailed,
    MergeResult,
    of_line,
    to_line,
)

RESULTS = [
    MergeFailed("no room: “disk”\nfull"),
    Merged(directory="live/x", sequence=2**53, passages=4, rows=5, without_states="no room"),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_one_line_and_is_read_back_unchanged(result: MergeResult) -> None:
    line = to_line(result)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert of_line(line) == result


@pytest.mark.parametrize(
    "line",
    ["", "Traceback:", "[]", "3", "null", "{}", '{"a": 1}', '{"merged": {}}', '{"stage": 3}',
     '{"merged": {}, "failed": {"reason": "y"}}', "[" * 100_000],
)  # fmt: skip
def test_another_line_is_no_result(line: str) -> None:
    assert of_line(line) is None
