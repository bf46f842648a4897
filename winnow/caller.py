"""Who calls, where callers are known by keys: bound to the task of a call.

Knows nothing of keys. Where callers are not known, nobody is bound.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from winnow.lease import Lease


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
