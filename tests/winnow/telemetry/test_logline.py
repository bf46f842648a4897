"""Whose line it is, where several processes write to one terminal."""

import io
import json
import sys

import pytest
import structlog

from winnow.cli.exits import print_error
from winnow.settings.names import NAME_VARIABLE
from winnow.telemetry.logline import prefix_lines
from winnow.telemetry.logs import logging_to_stderr


def logged(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> list[str]:
    """A line with a stack, and one that was printed."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with logging_to_stderr("info", as_json):
        try:
            raise ValueError("broken")
        except ValueError:
            structlog.get_logger().exception("it failed")
        sys.stderr.write("printed\n")
    return stream.getvalue().splitlines()


def test_every_line_for_people_begins_with_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME_VARIABLE, "node 0")
    lines = logged(monkeypatch, as_json=False)
    assert len(lines) > 3, "a stack has several lines"
    assert {line[:8] for line in lines} == {"node 0  "}


def test_lines_for_programs_have_the_name_as_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME_VARIABLE, "node 0")
    line, printed = logged(monkeypatch, as_json=True)
    assert json.loads(line)["process"] == "node 0"
    assert printed == "node 0  printed"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_process_on_its_own_has_no_name(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME_VARIABLE, raising=False)
    lines = logged(monkeypatch, as_json)
    assert "process" not in lines[0]
    assert lines[-1] == prefix_lines("printed") == "printed"


def test_an_error_that_ends_a_process_has_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(NAME_VARIABLE, "front")
    print_error("no such file")
    assert capsys.readouterr().err == "front   error: no such file\n"
