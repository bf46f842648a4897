"""Options whose values are lists, and what is said of wrong values."""

import pytest
import typer

from winnow.cli.commands import main
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


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("index", "", ": expected a directory, not an empty text"),
        ("timeout", "abc", " (env var: 'WINNOW_TIMEOUT'): should be a valid number, not 'abc'"),
        ("answers", "x", ": should be a valid integer, not 'x'"),
    ],
)
def test_a_wrong_value_is_named_with_the_rule(
    option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty path would mean the working directory."""
    with pytest.raises(SystemExit, match="2"):
        main(["ask", f"--{option}", value, "Who?"])
    error, *_ = capsys.readouterr().err.splitlines()
    assert error == f"error: invalid value for '--{option}'{said}"
