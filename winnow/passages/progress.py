"""The progress of work on rows of a file on standard error, with the first bad rows."""

from winnow.passages.rows import BadRow
from winnow.telemetry.progress import StageProgress

_SHOWN = 20


class RowProgress(StageProgress):
    """Shows stages and bad rows; a context manager."""

    _bad = 0

    def bad_row(self, row: BadRow) -> None:
        """Prints the first bad rows; the caller counts all."""
        self._bad += 1
        if self._bad <= _SHOWN:
            self.say(f"line {row.line}: {row.reason}")
        elif self._bad == _SHOWN + 1:
            self.say("further bad rows are only counted")
