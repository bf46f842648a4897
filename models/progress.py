"""Shows the progress of a long step: as a bar on a terminal, or as lines in a log.

The caller that advances a bar also draws it. No separate thread redraws the bar: beside the threads
of PyTorch and OpenVINO, a new thread may never start, and its creator would wait forever.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

REDRAW_SECONDS = 0.25
"""Interval between two drawings of a bar."""
LOG_SECONDS = 30.0
"""Interval between two lines of a log."""

Item = TypeVar("Item")
Clock = Callable[[], float]


class IntervalTimer:
    """Limits an action to once per interval of `seconds`. The first interval starts at creation."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._last = clock()

    def due(self) -> bool:
        """Returns whether the interval has passed. If it has, the next interval starts."""
        now = self._clock()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True


def progress_bar(console: Console, speed_estimate_period: float = 30.0) -> Progress:
    """Returns a bar that is drawn only by `refresh`, and only on a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=False,
        disable=not console.is_terminal,
        speed_estimate_period=speed_estimate_period,
    )


def track(
    items: Iterable[Item],
    label: str,
    total: int,
    console: Console | None = None,
    clock: Clock = time.monotonic,
) -> Iterator[Item]:
    """Yields `total` items, and shows on standard error how many are done."""
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    timer = IntervalTimer(REDRAW_SECONDS if console.is_terminal else LOG_SECONDS, clock)
    started = clock()
    with progress_bar(console) as bar:
        task = bar.add_task(label, total=total)
        for done, item in enumerate(items, 1):
            yield item
            bar.update(task, completed=done)
            if timer.due():
                bar.refresh()
                if not console.is_terminal:
                    seconds_left = (clock() - started) / done * (total - done)
                    console.print(f"{label}: {done} of {total}, about {seconds_left:.0f} s left")
