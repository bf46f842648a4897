"""The line in which a merge process tells its result."""

import pytest

from winnow.content_node.merging.protocol import (
    Merged,
    MergeFailed,
    MergeResult,
    format_result,
    parse_result,
)

RESULTS = [
    MergeFailed("no room: “disk”\nfull"),
    Merged(directory="live/x", sequence=2**53, passages=4, rows=5, without_states="no room"),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_one_line_and_is_read_back_unchanged(result: MergeResult) -> None:
    line = format_result(result)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert parse_result(line) == result


@pytest.mark.parametrize(
    "line",
    ["", "Traceback:", "[]", "3", "null", "{}", '{"a": 1}', '{"merged": {}}', '{"stage": 3}',
     '{"merged": {}, "failed": {"reason": "y"}}', "[" * 100_000],
)  # fmt: skip
def test_another_line_is_no_result(line: str) -> None:
    assert parse_result(line) is None
