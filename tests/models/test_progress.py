"""Tests of the progress of long steps."""

import threading
from collections.abc import Iterator
from io import StringIO
from itertools import count

import pytest
from rich.console import Console

from models.progress import LOG_SECONDS, REDRAW_SECONDS, IntervalTimer, track


def console(terminal: bool) -> Console:
    return Console(file=StringIO(), force_terminal=terminal, width=120)


def written(shown: Console) -> str:
    assert isinstance(shown.file, StringIO)
    return shown.file.getvalue()


def seconds(step: float) -> Iterator[float]:
    """A clock that goes on by `step` whenever it is looked at."""
    return (turn * step for turn in count())


@pytest.mark.parametrize("terminal", [True, False])
def test_no_thread_is_started_and_every_item_comes_in_order(terminal: bool) -> None:
    before = threading.active_count()
    seen = []
    for item in track([3, 1, 2], "read", 3, console(terminal)):
        assert threading.active_count() == before
        seen.append(item)
    assert seen == [3, 1, 2]


def test_a_terminal_shows_the_last_item() -> None:
    shown = console(terminal=True)
    list(track(range(7), "read candidates", 7, shown))
    assert "read candidates" in written(shown)
    assert "7/7" in written(shown)


def test_a_log_gets_a_line_from_time_to_time() -> None:
    shown, clock = console(terminal=False), seconds(LOG_SECONDS / 4)
    list(track(range(8), "encode passages", 8, shown, clock.__next__))
    lines = written(shown).splitlines()
    assert 1 < len(lines) < 8
    assert all(line.startswith("encode passages: ") and "of 8, about" in line for line in lines)


def test_a_short_step_logs_nothing() -> None:
    shown, clock = console(terminal=False), seconds(LOG_SECONDS / 100)
    list(track(range(8), "encode passages", 8, shown, clock.__next__))
    assert written(shown) == ""


def test_a_timer_is_due_at_most_once_in_its_interval() -> None:
    now = [0.0]
    timer = IntervalTimer(REDRAW_SECONDS, lambda: now[0])
    asked = []
    for now[0] in (0.1, 0.25, 0.3, 0.49, 0.5, 2.0, 2.1):
        asked.append(timer.due())
    assert asked == [False, True, False, False, True, True, False]


def test_an_error_between_items_goes_through_and_leaves_the_terminal_usable() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    shown = console(terminal=True)
    with pytest.raises(OSError, match="gone"):
        list(track(items(), "read", 2, shown))
    list(track([1], "read again", 1, shown))
    assert "read again" in written(shown)
