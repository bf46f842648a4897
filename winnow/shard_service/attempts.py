"""Refuses attempts to write that arrive after a later attempt of the same call.

If a connection breaks, a front sends its writes again by another one. The bytes of the first
attempt may still arrive, even after a newer write of the same passage, which they would undo.
"""

from winnow.deadline import Deadline
from winnow.domain.write import WriteAttempt
from winnow.errors import UnavailableError

LATER_ATTEMPT = "a later attempt to store these writes has arrived"
_MIN_PURGE = 32
"""Number of entries from which on expired ones are forgotten."""


class LatestAttempts:
    """The last attempt of each call that was sent more than once, until its deadline."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, Deadline]] = {}
        self._purge_at = _MIN_PURGE

    def admit(self, attempt: WriteAttempt, deadline: Deadline) -> None:
        """Records an attempt; raises UnavailableError if a later one has arrived.

        An attempt that arrives after `deadline` is refused elsewhere, so it is forgotten then.
        """
        latest, _ = self._latest.get(attempt.call, (0, deadline))
        if attempt.number < latest:
            raise UnavailableError(LATER_ATTEMPT)
        if attempt.number:
            self._latest[attempt.call] = attempt.number, deadline
            self._purge()

    def _purge(self) -> None:
        """Forgets what has expired whenever the number of entries has doubled."""
        if len(self._latest) < self._purge_at:
            return
        self._latest = {
            call: latest for call, latest in self._latest.items() if not latest[1].expired()
        }
        self._purge_at = max(2 * len(self._latest), _MIN_PURGE)
