"""A build's progress on standard error: its stages, the bad rows, what is kept of it."""

from pathlib import Path

from winnow.passages.rows import BadRow
from winnow.telemetry.progress import StageProgress

_SHOWN = 20


class BuildProgress(StageProgress):
    """Shows a build; a context manager."""

    _bad = 0

    def bad_row(self, row: BadRow) -> None:
        """Prints the first of them; `build_index` counts all."""
        self._bad += 1
        if self._bad <= _SHOWN:
            self.say(f"line {row.line}: {row.reason}")
        elif self._bad == _SHOWN + 1:
            self.say("further bad rows are only counted")

    def kept(self, directory: Path) -> None:
        """Says how to go on."""
        self.say(
            f"{directory} keeps what is done: run the same command again to go on, or remove it"
        )
