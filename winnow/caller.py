"""The caller of a call, where callers are known by keys, and what it may see and hold.

Knows nothing of keys. Where callers are not known by keys, no caller is bound to the task.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from winnow.errors import InvalidRequestError, Violation, WinnowError


class Lease:
    """Given to a stream when it begins, and ended when it must not go on."""

    def __init__(self, pause: Callable[[], float] = lambda: 0.0) -> None:
        """`pause`: the seconds until the next part may come; at 0 the part is counted."""
        self.pause = pause
        self.ended: WinnowError | None = None
        """Why it may not go on; None if it may."""
        self._tell: Callable[[WinnowError], None] = _nobody

    def end(self, why: WinnowError) -> None:
        """Whoever holds it must not go on; who waits is told at once."""
        self.ended = why
        self._tell(why)

    def tell(self, waiting: Callable[[WinnowError], None]) -> None:
        """Who is told of the end from now on, instead of who was before."""
        self._tell = waiting


def _nobody(_why: WinnowError) -> None:
    """Nobody waits."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a call."""

    name: str
    held: Callable[[], AbstractContextManager[Lease]]
    """A lease of what lasts."""
    may: Callable[[str], bool]
    """Whether it may do something, by the name of a scope."""
    expect: Callable[[str], None]
    """Raises PermissionDeniedError if it may not."""


_current: ContextVar[Caller | None] = ContextVar("caller", default=None)


def bind(caller: Caller) -> None:
    """From now on the present task is a call of this caller."""
    _current.set(caller)


def forget() -> None:
    """From now on the present task is a call of nobody that is known."""
    _current.set(None)


def current() -> Caller | None:
    """The caller of the present task; None if it is not known by a key."""
    return _current.get()


def held() -> AbstractContextManager[Lease]:
    """A lease of what lasts for the caller; one without end where callers are not known."""
    caller = current()
    return nullcontext(Lease()) if caller is None else caller.held()


def expect(scope: str) -> None:
    """Raises PermissionDeniedError if the caller has a key without a scope that it needs, too."""
    caller = current()
    if caller is not None:
        caller.expect(scope)


_ADMIN = "admin"


def shows_details() -> bool:
    """Whether the present caller may see machines, files and checksums.

    Where callers need no key, nobody may: nothing tells an administrator from a stranger.
    """
    known = current()
    return known is not None and known.may(_ADMIN)


def message_of(error: WinnowError) -> str:
    """What the present caller is told."""
    return str(error) if shows_details() else error.public or str(error)


def violations_of(error: InvalidRequestError) -> Sequence[Violation]:
    """The violations that the present caller is told; none where it is told a public message."""
    return error.violations if shows_details() or not error.public else ()
