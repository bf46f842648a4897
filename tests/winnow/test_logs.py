"""Log lines as they arrive in a terminal, a file or a pipe."""

import io
import json
import sys
from collections.abc import Iterator

import pytest
import structlog

from winnow.telemetry.logs import configure

ESCAPE = "\x1b"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    yield
    structlog.reset_defaults()


def logged(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, as_json: bool) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    configure("info", as_json)
    log = structlog.get_logger("test")
    log.debug("not shown")
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError:
        log.exception("failed", shard=3)
    return stream.getvalue()


def test_text_in_a_file_has_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    text = logged(monkeypatch, io.StringIO(), as_json=False)
    assert ESCAPE not in text
    for words in ("failed", "shard=3", "ZeroDivisionError: by nothing"):
        assert words in text
    assert "not shown" not in text


def test_text_at_a_terminal_has_colours_unless_they_are_forbidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ESCAPE in logged(monkeypatch, Terminal(), as_json=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE not in logged(monkeypatch, Terminal(), as_json=False)


def test_json_is_a_line_each_with_the_stack_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.loads(logged(monkeypatch, Terminal(), as_json=True))
    assert (line["event"], line["level"], line["shard"]) == ("failed", "error", 3)
    assert "ZeroDivisionError: by nothing" in line["exception"]
