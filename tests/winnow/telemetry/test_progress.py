"""Long work shows itself: a bar on a terminal, a line now and then elsewhere."""

import io

import pytest
from manual_clock import ManualClock
from rich.console import Console

from winnow.telemetry.progress import StageProgress
from winnow.telemetry.stage import LINE_INTERVAL, StageClock, duration


def lines(file: io.StringIO) -> list[str]:
    return file.getvalue().splitlines()


def test_a_line_has_share_rate_and_time_left() -> None:
    clock = ManualClock()
    stage = StageClock("encoding passages", 661_243, 9_940, clock)
    clock.advance(10)
    stage.advance(2_060)
    assert stage.progress_line() == "encoding passages: 12,000 of 661,243 (1 %), 206/s, 53 min left"


def test_the_rate_is_that_of_the_last_minute() -> None:
    clock = ManualClock()
    stage = StageClock("asking", 100_000, 0, clock)
    stage.advance(50_000)
    for _ in range(7):
        clock.advance(10)
        stage.advance(20)
        last = stage.progress_line()
    clock.advance(10)
    stage.advance(20)
    assert ", 2.0/s, " in stage.progress_line()
    assert ", 2.0/s, " not in last


def test_a_line_is_due_now_and_then() -> None:
    clock = ManualClock()
    stage = StageClock("asking", None, 0, clock)
    assert not stage.is_due()
    clock.advance(LINE_INTERVAL)
    assert stage.is_due()
    stage.progress_line()
    assert not stage.is_due()


def test_unknown_figures_are_not_shown() -> None:
    clock = ManualClock()
    assert StageClock("reading", None, 0, clock).progress_line() == "reading: 0"
    assert StageClock("encoding", 0, 0, clock).progress_line() == "encoding: 0 of 0"
    assert StageClock("encoding", 5, 5, clock).summary() == "encoding: 5 of 5 (100 %) in 0.0 s"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.42, "0.4 s"), (42, "42 s"), (3120, "52 min"), (11_520, "3 h 12 min"), (7180, "2 h 0 min")],
)
def test_durations_are_formatted_for_people(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_log_gets_plain_lines_at_the_beginning_now_and_then_and_at_the_end() -> None:
    clock, file = ManualClock(), io.StringIO()
    with StageProgress(Console(file=file), clock) as progress:
        progress.start("encoding passages", 40)
        for _ in range(20):
            clock.advance(1)
            progress.advance(2)
        progress.say("a word [red]in[/] between :cat:")
    assert lines(file) == [
        "encoding passages: 40 to do",
        "encoding passages: 20 of 40 (50 %), 2.0/s, 10 s left",
        "encoding passages: 40 of 40 (100 %), 2.0/s",
        "a word [red]in[/] between :cat:",
        "encoding passages: 40 of 40 (100 %) in 20 s, 2.0/s",
    ]


def test_every_stage_ends_with_what_it_came_to() -> None:
    clock, file = ManualClock(), io.StringIO()
    with StageProgress(Console(file=file), clock) as progress:
        progress.start("reading", None)
        progress.advance(7)
        progress.start("encoding", 7)
    assert lines(file) == [
        "reading",
        "reading: 7 in 0.0 s",
        "encoding: 7 to do",
        "encoding: 0 of 7 (0 %) in 0.0 s",
    ]


def test_a_terminal_gets_a_bar_and_no_lines() -> None:
    file = io.StringIO()
    terminal = Console(file=file, force_terminal=True, width=120, _environ={"TERM": "xterm"})
    with StageProgress(terminal) as progress:
        progress.start("reading passages", None)
        progress.advance(3)
        progress.say("a word in between")
        progress.start("encoding passages", 7)
        progress.advance(7)
    shown = file.getvalue()
    assert "3/3" in shown
    assert "7/7" in shown
    assert "a word in between" in shown
    assert "in 0.0 s" not in shown


def test_a_bar_that_is_interrupted_does_not_say_that_it_came_to_its_end() -> None:
    file = io.StringIO()
    terminal = Console(file=file, force_terminal=True, width=120, _environ={"TERM": "xterm"})

    def interrupted() -> None:
        with StageProgress(terminal) as progress:
            progress.start("encoding passages", 7)
            progress.advance(3)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "3/7" in file.getvalue()
    assert "3/3" not in file.getvalue()


def test_a_terminal_without_colours_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    environment = {"TERM": "xterm-256color", "NO_COLOR": "1"}
    with StageProgress(Console(file=file, force_terminal=True, _environ=environment)) as progress:
        progress.start("reading passages", 3)
        progress.advance(3)
    assert "\x1b[3" not in file.getvalue()
