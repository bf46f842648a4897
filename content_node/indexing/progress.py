"""A build's progress on a terminal: a bar with rate and time left, and the bad rows."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from content_node.indexing.rows import BadRow

_SHOWN = 20


class _Rate(ProgressColumn):
    """Steps a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="cyan")


class TerminalProgress:
    """Shows a build on standard error; a context manager."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description:18}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            speed_estimate_period=60,
        )
        self._task: TaskID | None = None
        self._bad = 0

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins, with so many steps, some of them done in an earlier run."""
        self._task = self._bar.add_task(stage, total=total, completed=done)

    def advance(self, steps: int) -> None:
        """Steps of the present stage are done."""
        if self._task is not None:
            self._bar.advance(self._task, steps)

    def bad_row(self, row: BadRow) -> None:
        """Prints the first of them, and counts all."""
        self._bad += 1
        if self._bad <= _SHOWN:
            self._console.print(f"line {row.line}: {row.reason}", markup=False, soft_wrap=True)
        elif self._bad == _SHOWN + 1:
            self._console.print("further bad rows are only counted")

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
