"""What a caller is told of an error.

Messages of errors may name machines, files and checksums. Those are for the log, and for callers
whose key has the scope `admin`; others are told the error's public message.
"""

from collections.abc import Sequence

from winnow import caller
from winnow.errors import InvalidRequestError, Violation, WinnowError

_ADMIN = "admin"


def shows_details() -> bool:
    """Whether the present caller may see machines, files and checksums.

    Where callers need no key, nobody may: nothing tells an administrator from a stranger.
    """
    known = caller.current()
    return known is not None and known.may(_ADMIN)


def message_of(error: WinnowError) -> str:
    """What the present caller is told."""
    return str(error) if shows_details() else error.public or str(error)


def violations_of(error: InvalidRequestError) -> Sequence[Violation]:
    """The violations that the present caller is told; none where it is told a public message."""
    return error.violations if shows_details() or not error.public else ()
