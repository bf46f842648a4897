"""HTTP as h11 reads it, a few events at a time.

uvicorn takes all events that the bytes of one read make. A body in chunks of one byte makes forty
thousand of them, for which everybody else would wait half a second.
"""

from typing import Any

import h11

LONGEST_HEAD = 16 * 1024
"""Bytes of the headers of a request."""
_AT_ONCE = 32
"""Events in a row; one takes some 12 microseconds."""


class RationedConnection(h11.Connection):
    """Says that it needs data, when it has given enough for now."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, LONGEST_HEAD)
        self._left = _AT_ONCE
        self.interrupted = False
        """Whether it may have more events than it gave."""

    def again(self) -> None:
        """It may give as many once more."""
        self._left, self.interrupted = _AT_ONCE, False

    def next_event(self) -> Any:
        """As h11 has it."""
        if not self._left:
            self.interrupted = True
            return h11.NEED_DATA
        self._left -= 1
        return super().next_event()
