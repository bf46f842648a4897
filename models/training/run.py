"""One training run, with its progress: a bar on a terminal, lines in a log."""

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import TaskID

from models.progress import DRAWN_EVERY, IntervalTimer, bar
from models.training.loop import RunState, Schedule, Task, Trainer

_SPEED_SECONDS = 120.0
"""Seconds over which the speed is estimated: steps differ in length."""


class TrainingProgress:
    """Shows every step on a terminal, and every `every`-th in a log; a context manager."""

    def __init__(self, every: int, console: Console | None = None) -> None:
        self._every = every
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar = bar(self._console, _SPEED_SECONDS)
        self._drawn = IntervalTimer(DRAWN_EVERY)
        self._task: TaskID | None = None

    def show(self, standing: RunState) -> None:
        """Shows the state after a step."""
        if self._console.is_terminal:
            self._draw(standing)
        elif standing.step % self._every == 0 or standing.step == standing.steps:
            counted = f"step {standing.step}/{standing.steps}"
            self._console.print(f"{time.strftime('%H:%M:%S')}  {counted}  {standing.line()}")

    def _draw(self, standing: RunState) -> None:
        if self._task is None:
            self._task = self._bar.add_task("", total=standing.steps, completed=standing.step)
        self._bar.update(self._task, completed=standing.step, description=standing.line())
        if self._drawn.due():
            self._bar.refresh()

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


def train(task: Task, schedule: Schedule, path: Path, every: int) -> None:
    """Trains to the end, from the checkpoint at `path` if there is one.

    Writes a checkpoint every `every` steps.
    """
    trainer = Trainer(task, schedule, path)
    with TrainingProgress(every) as progress:
        trainer.run(every, progress.show)
