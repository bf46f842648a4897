"""A feed's progress on standard error, and the bad rows."""

from winnow.passages.rows import BadRow
from winnow.telemetry.progress import Progress

_SHOWN = 20


class FeedProgress(Progress):
    """Shows a feed; a context manager."""

    _bad = 0

    def bad_row(self, row: BadRow) -> None:
        """Prints the first of them."""
        self._bad += 1
        if self._bad <= _SHOWN:
            self.say(f"line {row.line}: {row.reason}")
        elif self._bad == _SHOWN + 1:
            self.say("further bad rows are only counted")
