"""Options whose values are lists."""

import pytest
import typer

from winnow.cli.options import parse_positions
from winnow.client import Position


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("", []),
        ("0:17", [Position(0, 17)]),
        (" 0:17, 2:5 ,", [Position(0, 17), Position(2, 5)]),
    ],
)
def test_positions_are_separated_by_commas(option: str, expected: list[Position]) -> None:
    assert parse_positions(option) == expected


@pytest.mark.parametrize(
    "option", ["17", "0:", ":1", "0:1:2", "-1:2", "a:b", "0:99999999999999999999"]
)
def test_an_invalid_position_is_wrong_usage_and_named(option: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not SHARD:SEQUENCE, such as 0:17"):
        parse_positions(option)
