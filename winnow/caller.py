"""The caller of a call, where callers are known by keys, and what it may see and hold.

Knows nothing of keys. Where callers are not known by keys, no caller is bound to the task.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from winnow.errors import InvalidRequestError, Violation, WinnowError


class Lease:
    """The permission of a stream to go on; given when it begins, ended when it must stop."""

    def __init__(self, pause: Callable[[], float] = lambda: 0.0) -> None:
        """`pause` returns the seconds until the next part may come; at 0 it has counted the
        part.
        """
        self.pause = pause
        self.ended: WinnowError | None = None
        """Why the stream may not go on; None if it may."""
        self._tell: Callable[[WinnowError], None] = _nobody

    def end(self, why: WinnowError) -> None:
        """Ends the lease, and tells the waiting part at once."""
        self.ended = why
        self._tell(why)

    def tell(self, waiting: Callable[[WinnowError], None]) -> None:
        """Sets the function that is called with the error when the lease ends."""
        self._tell = waiting


def _nobody(_why: WinnowError) -> None:
    """Is called where no part waits."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller of the current call, and its scopes."""

    name: str
    held: Callable[[], AbstractContextManager[Lease]]
    """Opens a lease, for a stream."""
    may: Callable[[str], bool]
    """Whether the caller has a scope."""
    expect: Callable[[str], None]
    """Raises PermissionDeniedError if the caller does not have a scope."""


_current: ContextVar[Caller | None] = ContextVar("caller", default=None)


def bind(caller: Caller) -> None:
    """Makes `caller` the caller of the present task."""
    _current.set(caller)


def forget() -> None:
    """Makes the caller of the present task unknown."""
    _current.set(None)


def current() -> Caller | None:
    """The caller of the present task; None if it is not known by a key."""
    return _current.get()


def held() -> AbstractContextManager[Lease]:
    """A lease for a stream of the caller; without an end where callers are not known."""
    caller = current()
    return nullcontext(Lease()) if caller is None else caller.held()


def expect(scope: str) -> None:
    """Raises PermissionDeniedError if the caller's key lacks `scope`.

    Does nothing if callers need no key.
    """
    caller = current()
    if caller is not None:
        caller.expect(scope)


_ADMIN = "admin"


def shows_details() -> bool:
    """Whether the present caller may see machines, files and checksums in errors.

    Only keys with the scope `admin` may. Where callers need no key, none of them may: nothing tells
    an administrator from a stranger.
    """
    known = current()
    return known is not None and known.may(_ADMIN)


def message_of(error: WinnowError) -> str:
    """The message of an error for the present caller."""
    return str(error) if shows_details() else error.public or str(error)


def violations_of(error: InvalidRequestError) -> Sequence[Violation]:
    """The violations for the present caller; none where it gets a public message."""
    return error.violations if shows_details() or not error.public else ()
