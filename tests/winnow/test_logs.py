"""Log lines as they arrive in a terminal, a file or a pipe."""

import io
import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

import pytest
import structlog
from manual_clock import ManualClock
from small_disks import limited_files
from tenacious import LONG, until

from winnow.policy.sampling import LogSampler
from winnow.telemetry import stderr
from winnow.telemetry.logline import MAX_LINE_LENGTH
from winnow.telemetry.logqueue import LogQueue
from winnow.telemetry.logs import logging_to_stderr

ESCAPE = "\x1b"
_FAR = 1 << 30
"""Bytes into a file with a hole, where no other file of the tests gets to."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "no space left on device")


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("not to be shown")


@pytest.fixture(autouse=True)
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives closing `LONG` seconds, and stops the clock by which lines are sampled."""
    monkeypatch.setattr("winnow.telemetry.logs._CLOSE_SECONDS", LONG)
    monkeypatch.setattr("winnow.telemetry.logs.LogSampler", lambda _: LogSampler(ManualClock()))


def logged(
    monkeypatch: pytest.MonkeyPatch, say: Callable[[], object], stream: io.StringIO, as_json: bool
) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with logging_to_stderr("info", as_json):
        say()
    assert sys.stderr is stream
    return stream.getvalue()


def lines(monkeypatch: pytest.MonkeyPatch, say: Callable[[], object]) -> list[dict[str, object]]:
    text = logged(monkeypatch, say, io.StringIO(), as_json=True)
    return [json.loads(line) for line in text.splitlines()]


def show(*words: str) -> None:
    """As other people's code does."""
    print(*words, file=sys.stderr)  # noqa: T201


def fail() -> None:
    log = structlog.get_logger("test")
    log.debug("not shown")
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError:
        log.exception("failed", shard=3)


def test_text_in_a_file_has_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    text = logged(monkeypatch, fail, io.StringIO(), as_json=False)
    assert ESCAPE not in text
    for words in ("failed", "shard=3", "ZeroDivisionError: by nothing"):
        assert words in text
    assert "not shown" not in text


def test_text_at_a_terminal_has_colours_unless_they_are_forbidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ESCAPE in logged(monkeypatch, fail, Terminal(), as_json=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE not in logged(monkeypatch, fail, Terminal(), as_json=False)


def test_json_is_a_line_each_with_the_stack_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    [line] = lines(monkeypatch, fail)
    assert (line["event"], line["level"], line["shard"]) == ("failed", "error", 3)
    assert "ZeroDivisionError: by nothing" in str(line["exception"])


@pytest.mark.parametrize("as_json", [True, False])
def test_what_a_client_sent_neither_breaks_a_line_nor_reaches_the_terminal(
    monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    def say() -> None:
        structlog.get_logger("test").info("refused", error=f"a\r\nb{ESCAPE}[2J\x9b\u2028\ud800c")

    text = logged(monkeypatch, say, io.StringIO(), as_json)
    assert len(text.splitlines()) == 1
    assert not set(text[:-1]) & set("\r\n\x1b\x9b\u2028\ud800")
    assert "2J" in text


def test_a_huge_line_is_cut_and_stays_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has more values than any line of ours."""

    def say() -> None:
        values: dict[str, object] = {f"v{number}": "\u20ac" * 4_000 for number in range(15)}
        structlog.get_logger("test").info("x" * 100_000, **values, a=["y" * 9_000], n=7)

    text = logged(monkeypatch, say, io.StringIO(), as_json=True)
    assert len(text) <= MAX_LINE_LENGTH + 1
    line = json.loads(text)
    assert "99,960 characters" in line["event"]
    assert line["n"] == 7


def test_a_value_that_cannot_be_shown_is_no_error_of_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with logging_to_stderr("info") as logs:
        structlog.get_logger("test").info("call", value=Unshowable())
        assert logs.dropped == 1


def test_a_full_disk_is_no_error_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Full())
    with logging_to_stderr("info") as logs:
        structlog.get_logger("test").info("call")
        show("by another library")
        until(lambda: logs.dropped == 2)


def test_without_any_standard_error_all_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with logging_to_stderr("info") as logs:
        structlog.get_logger("test").info("call")
        until(lambda: logs.dropped == 1)


def test_refusals_without_end_are_a_few_lines_and_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def say() -> None:
        log = structlog.get_logger("test")
        for _ in range(432):
            log.info("call refused", method="Answer", status="RESOURCE_EXHAUSTED")
            log.info("call", method="Answer", status="OK")
        log.error("call failed", method="Answer", status="INTERNAL")

    found = lines(monkeypatch, say)
    refused = [line for line in found if line["event"] == "call refused"]
    left_out = [line for line in found if line["event"] == "more lines like this"]
    assert len(refused) + sum(int(str(line["lines"])) for line in left_out) == 432
    assert len(refused) + len(left_out) < 200
    assert {(line["like"], line["status"]) for line in left_out} == {
        ("call refused", "RESOURCE_EXHAUSTED")
    }
    assert sum(line["event"] == "call" for line in found) == 432, "successes are all told"
    assert sum(line["event"] == "call failed" for line in found) == 1, "another kind is not cut"


def test_stacks_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that every call meets would fill a disk with them."""

    def say() -> None:
        for _ in range(50):
            fail()

    found = lines(monkeypatch, say)
    assert sum("exception" in line for line in found) < 10
    assert sum(int(str(line.get("lines", 1))) for line in found) == 50


def test_what_libraries_say_are_lines_among_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Python's logging, its warnings, and threads that die."""

    def say() -> None:
        logging.getLogger("grpc").error("a call of %s failed", "somebody")
        logging.getLogger("grpc").error("a call of %d failed", "nobody")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("old", DeprecationWarning, stacklevel=1)

    # as other people's code may have done, or taken back by halves
    showing, level = warnings.showwarning, logging.getLogger().level
    logging.captureWarnings(True)
    warnings.showwarning = showing
    logging.getLogger().setLevel(logging.ERROR)
    try:
        found = lines(monkeypatch, say)
        assert logging.getLogger().level == logging.ERROR
    finally:
        logging.captureWarnings(False)
        logging.getLogger().setLevel(level)
    grpc, unfit, warning = found
    assert (grpc["event"], grpc["logger"]) == ("a call of somebody failed", "grpc")
    assert "a call of %d failed (TypeError" in str(unfit["event"])
    assert (warning["logger"], warning["level"]) == ("py.warnings", "warning")


def test_what_is_printed_arrives_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def say() -> None:
        show("one", "two")
        show("x" * 100_000)

    first, second = logged(monkeypatch, say, io.StringIO(), as_json=True).splitlines()
    assert (first, len(second)) == ("one two", MAX_LINE_LENGTH)


NATIVE = """
import os
from winnow.telemetry.logs import logging_to_stderr
with logging_to_stderr("info"):
    try:
        os.write(2, b"x" * 1_000_000)
        os.write(2, b"x")
    except BlockingIOError:
        print("went on")
"""


def test_native_code_does_not_wait_for_a_pipe_that_nobody_reads() -> None:
    """It writes to the descriptor itself; those who share the pipe are not touched."""
    reader, writer = os.pipe()
    command = [sys.executable, "-c", NATIVE]
    try:
        ended = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=writer, timeout=LONG
        )
        assert ended.stdout == b"went on\n"
        assert os.get_blocking(writer)
    finally:
        os.close(reader)
        os.close(writer)


class Stuck:
    """A pipe that nobody reads."""

    def __init__(self) -> None:
        self.writing, self.go_on = threading.Event(), threading.Event()
        self.written = b""

    def write(self, data: bytes) -> None:
        self.writing.set()
        assert self.go_on.wait(60)
        self.written += data


def test_logging_never_waits_for_the_writer_and_lines_beyond_the_queue_are_counted() -> None:
    stuck = Stuck()
    lines = LogQueue(stuck.write, max_lines=3)
    lines.put("first")
    assert stuck.writing.wait(60)
    for number in range(5):
        lines.put(str(number))
    assert lines.dropped == 2
    lines.close(seconds=0)  # does not wait for it either
    lines.put("too late")
    assert lines.dropped == 3
    stuck.go_on.set()
    lines.close(seconds=60)
    assert stuck.written == b"first\n0\n1\n2\n"


def test_a_descriptor_that_takes_lines_in_parts_gets_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that says so instead of waiting."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    received = bytearray()

    def read() -> None:
        while len(received) < 500_100:
            received.extend(os.read(reader, 1_000))

    reading = threading.Thread(target=read)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with logging_to_stderr("info") as logs:
            for _ in range(100):
                show("x" * 5_000)
            reading.start()
            reading.join(LONG)
            assert logs.dropped == 0
    os.close(reader)
    assert received.split(b"\n") == [b"x" * 5_000] * 100 + [b""]


def test_the_first_line_after_a_full_disk_is_whole(tmp_path: Path) -> None:
    room = 100
    with (tmp_path / "log").open("w+b") as file, limited_files(_FAR + room):
        file.seek(_FAR)
        with redirect_stderr(io.TextIOWrapper(file)) as log:
            write = stderr.open_writer()
            with pytest.raises(OSError, match="File too large"):
                write(b"a" * 2 * room + b"\n")
            file.truncate(_FAR + room // 2)
            file.seek(_FAR + room // 2)
            write(b"whole\n")
            file.seek(_FAR)
            assert file.read().splitlines() == [b"a" * (room // 2), b"whole"]
            log.detach()
