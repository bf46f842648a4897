"""Progress of a long step: a bar on a terminal, a line from time to time in a log.

The caller that advances also draws. No thread redraws: a new thread beside those of PyTorch and
OpenVINO may never begin, and its starter would wait for it.
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

DRAWN_EVERY = 0.25
"""Seconds, on a terminal."""
SAID_EVERY = 30.0
"""Seconds, elsewhere."""

Item = TypeVar("Item")
Clock = Callable[[], float]


class IntervalTimer:
    """Agrees at most once in `seconds`, and not before these have passed."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._last = clock()

    def due(self) -> bool:
        """Returns whether it is time again."""
        now = self._clock()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True


def bar(console: Console, speed_estimate_period: float = 30.0) -> Progress:
    """Returns a bar that is drawn when it is refreshed; nothing where there is no terminal."""
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


def followed(
    items: Iterable[Item],
    what: str,
    total: int,
    console: Console | None = None,
    clock: Clock = time.monotonic,
) -> Iterator[Item]:
    """`items`, of which there are `total`, while standard error says how many have passed."""
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    timer = IntervalTimer(DRAWN_EVERY if console.is_terminal else SAID_EVERY, clock)
    started = clock()
    with bar(console) as drawn:
        task = drawn.add_task(what, total=total)
        for done, item in enumerate(items, 1):
            yield item
            drawn.update(task, completed=done)
            if timer.due():
                drawn.refresh()
                if not console.is_terminal:
                    left = (clock() - started) / done * (total - done)
                    console.print(f"{what}: {done} of {total}, about {left:.0f} s left")
