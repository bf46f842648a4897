"""A feed's progress on standard error, and the bad rows."""

import time

from winnow.errors import WinnowError
from winnow.passages.rows import BadRow
from winnow.telemetry.progress import StageProgress

_SHOWN = 20
_EVERY = 10.0
"""Seconds between two lines that say why it waits."""


class FeedProgress(StageProgress):
    """Shows a feed; a context manager."""

    _bad = 0
    _said_at = float("-inf")

    def bad_row(self, row: BadRow) -> None:
        """Prints the first of them."""
        self._bad += 1
        if self._bad <= _SHOWN:
            self.say(f"line {row.line}: {row.reason}")
        elif self._bad == _SHOWN + 1:
            self.say("further bad rows are only counted")

    def waits(self, error: WinnowError) -> None:
        """Says why a request is tried again, now and then."""
        if time.monotonic() - self._said_at >= _EVERY:
            self._said_at = time.monotonic()
            self.say(f"trying again: {error}")
