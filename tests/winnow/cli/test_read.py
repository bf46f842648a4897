"""What `winnow read` says before it calls a server."""

from pathlib import Path

import pytest

from winnow.__main__ import main
from winnow.cli.read.cli import render_reading
from winnow.client.reading import ReadingReport, ReadReply, TextReading

REPORT = ReadingReport(
    question_truncated=True,
    unread_language="de",
    tokens=1,
    windows=1,
    windows_remembered=0,
    tokenise_ms=0.0,
    queue_ms=0.0,
    read_ms=0.0,
    total_ms=0.0,
    model="m",
)


def test_a_file_in_place_of_the_question_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command would otherwise wait for standard input."""
    file = tmp_path / "policy.txt"
    file.write_text("Ada Lind built the bridge.", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["read", str(file)])
    assert ended.value.code == 1
    assert f"error: {file} is a file: write the question before it" in capsys.readouterr().err


def test_a_question_in_another_language_and_a_long_one_are_reported() -> None:
    """As `winnow ask` does."""
    reply = ReadReply(has_answer=False, readings=(), best=(), report=REPORT, request_id="")
    lines = [line.plain for line in render_reading(reply, [], plain=True)]
    assert lines == [
        "the question was too long: its end was not used",
        "the question is probably in the language 'de', which the models do not read",
        "no text has a likely answer",
    ]


def test_a_confidence_is_in_percent() -> None:
    """As `winnow ask` shows it."""
    best = TextReading(
        index=0,
        id="policy.txt",
        text="Ada",
        start=0,
        end=3,
        sentence=(0, 9),
        score=1.0,
        relevance=1.0,
        span_score=1.0,
        relevance_score=1.0,
        confidence=0.437,
    )
    reply = ReadReply(has_answer=True, readings=(best,), best=(best,), report=REPORT, request_id="")
    *_, last = (line.plain for line in render_reading(reply, ["Ada Lind."], plain=True))
    assert last == "confidence 44%, policy.txt, characters 0 to 3\n"
