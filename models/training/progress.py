"""How a training run shows itself: a bar on a terminal, lines in a log."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from models.training.loop import Standing


class TrainingProgress:
    """Shows every step on a terminal, every `every`-th elsewhere; a context manager."""

    def __init__(self, every: int, console: Console | None = None) -> None:
        self._every = every
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            speed_estimate_period=120,
        )
        self._task: TaskID | None = None

    def show(self, standing: Standing) -> None:
        """One step is done."""
        if self._task is None:
            self._task = self._bar.add_task("", total=standing.steps, completed=standing.step)
        self._bar.update(self._task, completed=standing.step, description=standing.line())
        last = standing.step == standing.steps
        if not self._console.is_terminal and (standing.step % self._every == 0 or last):
            counted = f"step {standing.step}/{standing.steps}"
            self._console.print(f"{time.strftime('%H:%M:%S')}  {counted}  {standing.line()}")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
