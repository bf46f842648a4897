"""Converts the last id of a page to a token and back. Pure.

A token says where a page begins, and nothing about a node or a moment. So it never expires.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

from winnow.errors import InvalidRequestError, Violation

_FIELD = "page_token"


def token_after(kind: str, last: str) -> str:
    """Returns the token of the page after `last`. `kind` is a letter for what is listed."""
    return urlsafe_b64encode(f"{kind}{last}".encode()).decode().rstrip("=")


def last_of_token(kind: str, token: str) -> str:
    """Returns the last id or name of the previous page; empty for the first page.

    Raises InvalidRequestError if the token is not of this kind.
    """
    if not token:
        return ""
    try:
        text = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except (Error, ValueError):
        text = ""
    if not text.startswith(kind):
        problem = "is not a token of this call: send the token of the previous page"
        raise InvalidRequestError(Violation(_FIELD, problem))
    return text.removeprefix(kind)
