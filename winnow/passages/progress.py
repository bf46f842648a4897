"""Shows progress through the rows of a file, and the first bad rows, on standard error."""

from winnow.passages.rows import BadRow
from winnow.telemetry.progress import StageProgress

_MAX_SHOWN = 20


class RowProgress(StageProgress):
    """Shows stages and bad rows; a context manager."""

    _bad_rows = 0

    def bad_row(self, row: BadRow) -> None:
        """Prints a bad row, unless many were printed already."""
        self._bad_rows += 1
        if self._bad_rows <= _MAX_SHOWN:
            self.say(f"line {row.line}: {row.reason}")
        elif self._bad_rows == _MAX_SHOWN + 1:
            self.say("further bad rows are only counted")
