"""Runs a training and shows its progress, as a bar on a terminal or as lines in a log."""

import time
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import TaskID

from models.progress import REDRAW_SECONDS, IntervalTimer, progress_bar
from models.training.loop import RunState, Schedule, Task, Trainer

_SPEED_SECONDS = 120.0
"""Period over which the speed is averaged, because steps differ in length."""


class TrainingProgress:
    """Shows every step on a terminal, or every `log_every`-th step in a log. A context manager."""

    def __init__(self, log_every: int, console: Console | None = None) -> None:
        self._log_every = log_every
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar = progress_bar(self._console, _SPEED_SECONDS)
        self._redraw_timer = IntervalTimer(REDRAW_SECONDS)
        self._bar_task: TaskID | None = None

    def show(self, state: RunState) -> None:
        """Shows the state after a step."""
        if self._console.is_terminal:
            self._draw(state)
        elif state.step % self._log_every == 0 or state.step == state.steps:
            count = f"step {state.step}/{state.steps}"
            self._console.print(f"{time.strftime('%H:%M:%S')}  {count}  {state.summary()}")

    def _draw(self, state: RunState) -> None:
        if self._bar_task is None:
            self._bar_task = self._bar.add_task("", total=state.steps, completed=state.step)
        self._bar.update(self._bar_task, completed=state.step, description=state.summary())
        if self._redraw_timer.due():
            self._bar.refresh()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def run_training(task: Task, schedule: Schedule, path: Path, checkpoint_every: int) -> None:
    """Trains to the end, resuming from the checkpoint at `path` if there is one."""
    trainer = Trainer(task, schedule, path)
    with TrainingProgress(checkpoint_every) as progress:
        trainer.run(checkpoint_every, progress.show)
