"""Headers that the code behind a call adds to its reply: over gRPC as trailing metadata."""

from contextvars import ContextVar

_headers: ContextVar[dict[str, str] | None] = ContextVar("reply_headers", default=None)


def begin() -> dict[str, str]:
    """Begins a call; returns its headers by name, which later calls of `add` extend."""
    headers: dict[str, str] = {}
    _headers.set(headers)
    return headers


def add(name: str, value: str) -> None:
    """Adds a header to the reply of the current call, also from a task that the call has started.

    Does nothing outside a call. `name` has lower case.
    """
    headers = _headers.get()
    if headers is not None:
        headers[name] = value
