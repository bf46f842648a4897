"""Why a file has no document. Pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Self

_MAX_DETAIL = 300
"""Limit of characters of a detail."""


class FailureReason(Enum):
    """The kind of a failure, in the words of a report."""

    NO_TEXT = "no text"
    """The file has no text, such as a scan without recognised text."""
    PASSWORD = "needs a password"  # noqa: S105 - not a password
    DAMAGED = "damaged"
    UNKNOWN_FORMAT = "unknown format"
    """The content has no format that can be converted."""
    TOO_LARGE = "too large"
    """The file, its unpacked content or its text exceeds a limit."""
    TOO_SLOW = "too slow"
    TOO_MUCH_MEMORY = "too much memory"
    CRASHED = "crashed"
    """The process that converted the file ended."""
    UNREADABLE = "cannot be read"
    """The operating system refuses to read the file."""


@dataclass(frozen=True, slots=True)
class ConversionFailure:
    """A file that was not converted, and why."""

    reason: FailureReason
    detail: str
    """What exactly is wrong, such as `page 3 is not a page`; not empty."""


class ConversionError(Exception):
    """Raised by a format for a file that it cannot convert."""

    def __init__(self, reason: FailureReason, detail: str) -> None:
        """Shortens the detail, which may quote the file, to one line of printable characters."""
        printable = "".join(each if each.isprintable() else "?" for each in detail[:_MAX_DETAIL])
        super().__init__(printable)
        self.reason = reason
        self.detail = printable

    @classmethod
    def of_size(cls, size: int, limit: int) -> Self:
        """Returns the error for a file of `size` bytes, which are more than `limit`."""
        detail = f"the file has {size:,} bytes, at most {limit:,} are read"
        return cls(FailureReason.TOO_LARGE, detail)

    def failure(self) -> ConversionFailure:
        """Returns the failure as a value."""
        return ConversionFailure(self.reason, self.detail)
