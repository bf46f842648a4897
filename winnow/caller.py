"""The authenticated caller of the current task: its scopes, leases, and visible error details.

Does not know keys. Without authentication, a task has no caller.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field

from winnow.errors import InvalidRequestError, OverloadedError, Violation, WinnowError


class Lease:
    """Permission for a stream to continue. It ends, for example, when the key is revoked."""

    def __init__(self, pause: Callable[[], float] = lambda: 0.0) -> None:
        """`pause` counts the next message and returns 0, or returns the seconds to wait."""
        self.pause = pause
        self.end_error: WinnowError | None = None
        """The error with which the lease ended; None while it is valid."""
        self._on_end: Callable[[WinnowError], None] = lambda _error: None

    def end(self, error: WinnowError) -> None:
        """Ends the lease, and calls the callback of `on_end` with the error."""
        self.end_error = error
        self._on_end(error)

    def on_end(self, callback: Callable[[WinnowError], None]) -> None:
        """Sets the callback, which `end` calls with the error. Replaces an earlier callback."""
        self._on_end = callback


_TENANT_CLIENT = "tenant:"
"""Begins the client key of a tenant."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller of the current call, and its scopes."""

    name: str
    open_lease: Callable[[], AbstractContextManager[Lease]]
    """Opens the lease of a stream."""
    has_scope: Callable[[str], bool]
    """Returns whether the caller has a scope."""
    require_scope: Callable[[str], None]
    """Raises PermissionDeniedError if the caller lacks a scope."""
    tenant: str = field(default="", kw_only=True)
    """Tenant of all calls of the caller; empty for a caller of no tenant."""

    @property
    def client(self) -> str:
        """The client key of the caller. All keys of a tenant are one client.

        A tenant with many keys would otherwise get many shares.
        """
        return f"{_TENANT_CLIENT}{self.tenant}" if self.tenant else self.name


_current: ContextVar[Caller | None] = ContextVar("caller", default=None)


def bind(caller: Caller) -> None:
    """Sets the caller of the current task."""
    _current.set(caller)


def forget() -> None:
    """Removes the caller of the current task."""
    _current.set(None)


def current() -> Caller | None:
    """Returns the caller of the current task; None without authentication."""
    return _current.get()


def tenant() -> str:
    """Returns the tenant of the caller of the current task; empty for none."""
    caller = current()
    return caller.tenant if caller is not None else ""


def open_lease() -> AbstractContextManager[Lease]:
    """Opens the lease of a stream. Without authentication, the lease never ends."""
    caller = current()
    return nullcontext(Lease()) if caller is None else caller.open_lease()


def require_scope(scope: str) -> None:
    """Raises PermissionDeniedError if the caller lacks `scope`.

    Without authentication, every call is allowed.
    """
    caller = current()
    if caller is not None:
        caller.require_scope(scope)


_ADMIN = "admin"


def shows_details() -> bool:
    """Returns whether the current caller may see machines, files and checksums in errors.

    Requires the scope `admin`. Without authentication, no caller may see them, because
    administrators cannot be identified.
    """
    caller = current()
    return caller is not None and caller.has_scope(_ADMIN)


BUSY = "the server is busy: try again"
"""Message of an overload for callers of a tenant."""


def message_of(error: WinnowError) -> str:
    """Returns the message of an error for the current caller.

    A caller of a tenant is not told how much other callers ask or write.
    """
    if shows_details():
        return str(error)
    is_load = isinstance(error, OverloadedError)
    return error.public or (BUSY if is_load and tenant() else str(error))


def violations_of(error: InvalidRequestError) -> Sequence[Violation]:
    """Returns the violations that the current caller may see; empty if only `public` is visible."""
    return error.violations if shows_details() or not error.public else ()
