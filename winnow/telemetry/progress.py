"""Progress of long work on standard error: a bar on a terminal, otherwise a line every ten seconds.

Rich omits colours if NO_COLOR is set or the output is not a terminal.
"""

import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from winnow.telemetry.stage import StageClock


class StageProgress:
    """A context manager that shows the progress of successive stages."""

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._bars = _bars(self._console) if self._console.is_interactive else None
        self._stage: StageClock | None = None
        self._task = TaskID(0)

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """Begins a stage of `total` steps. An earlier run has done `done` of them."""
        self._end_stage()
        self._stage = StageClock(stage, total, done, self._clock)
        if self._bars is not None:
            self._task = self._bars.add_task(stage, total=total, completed=done)
        else:
            self.say(self._stage.opening_line())

    def advance(self, steps: int = 1) -> None:
        """Adds `steps` to the finished steps of the current stage."""
        if self._stage is None:
            return
        self._stage.advance(steps)
        if self._bars is not None:
            self._bars.advance(self._task, steps)
        elif self._stage.is_due():
            self.say(self._stage.progress_line())

    def say(self, text: str) -> None:
        """Prints a line, above the bar if there is one."""
        self._console.print(text, markup=False, emoji=False, soft_wrap=True)

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self._end_stage(done=error is None)
        if self._bars is not None:
            self._bars.stop()

    def _end_stage(self, done: bool = True) -> None:
        """Ends the current stage, if any. `done`: False if the stage was interrupted."""
        if self._stage is None:
            return
        if self._bars is not None and done:
            # without a total, the finished bar would keep moving
            self._bars.update(self._task, total=self._bars.tasks[self._task].completed or 1)
        elif self._bars is None:
            self.say(self._stage.summary())
        self._stage = None


class _Rate(ProgressColumn):
    """A column with the steps per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="cyan")


def _bars(console: Console) -> Bars:
    return Bars(
        TextColumn("{task.description:18}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        speed_estimate_period=60,
    )
