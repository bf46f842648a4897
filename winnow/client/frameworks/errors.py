"""Converts errors of Winnow to the types of errors that programs of a framework expect."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
    WinnowError,
)

ErrorTypes = Mapping[type[WinnowError], type[Exception]]
"""For a type of Winnow's errors, the type to raise. The first type that matches counts."""
BUILTIN_ERRORS: ErrorTypes = {
    InvalidRequestError: ValueError,
    DeadlineExceededError: TimeoutError,
    UnavailableError: ConnectionError,
    UnauthenticatedError: PermissionError,
    PermissionDeniedError: PermissionError,
}
"""Python's own types, for frameworks that have no types for failed calls."""


@contextmanager
def framework_errors(types: ErrorTypes = BUILTIN_ERRORS) -> Iterator[None]:
    """Raises an error of Winnow as another type, with the same message and notes.

    The error of Winnow is its cause. An error without a type in `types` is raised unchanged.
    """
    try:
        yield
    except WinnowError as error:
        kind = next((types[each] for each in types if isinstance(error, each)), None)
        if kind is None:
            raise
        raised = kind(str(error))
        for note in getattr(error, "__notes__", ()):
            raised.add_note(note)
        raise raised from error
