"""Tokens, which callers send, and their digests, which are stored. Pure, except for randomness.

A token has 256 random bits, too many to guess. So one round of SHA-256 protects it as well as a
slow hash, which only passwords need.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable
from typing import Any

HEADER = "authorization"
PREFIX = "wnw_"
"""Identifies a token to people, and to programs that search code for secrets."""
_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_.~+/=-]{1,200}", re.ASCII)
_BEARER = re.compile(rf"bearer +({_TOKEN.pattern}) *", re.IGNORECASE | re.ASCII)


def new_token() -> str:
    """Generates a random token."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def digest_of(token: str) -> str:
    """The digest of a token: 64 hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_token(text: str) -> bool:
    """Whether a text has the format of a token, which can be sent in a header."""
    return _TOKEN.fullmatch(text) is not None


def token_of_headers(headers: Iterable[tuple[str, Any]]) -> str:
    """Returns the token of the header `authorization: Bearer TOKEN` (RFC 6750); empty without one.

    Header names must be in lower case. Only the first such header counts.
    """
    header = next((value for name, value in headers if name == HEADER), "")
    match = _BEARER.fullmatch(header) if isinstance(header, str) else None
    return match[1] if match else ""
