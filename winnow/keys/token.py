"""Tokens: what a caller sends, and the digest that is stored. Pure, but for chance.

A token has 256 random bits. Nobody can try them all, so one round of SHA-256 protects it as well as
a slow hash. Slow hashes are for passwords, which people choose.
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
    """A new random token."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def digest_of(token: str) -> str:
    """The digest of a token: 64 hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_token(text: str) -> bool:
    """Whether a text could be a token and travel in a header."""
    return _TOKEN.fullmatch(text) is not None


def of_headers(headers: Iterable[tuple[str, Any]]) -> str:
    """The token of the first header `authorization: Bearer TOKEN` (RFC 6750); empty without one.

    Names of headers are in lower case.
    """
    sent = next((value for name, value in headers if name == HEADER), "")
    found = _BEARER.fullmatch(sent) if isinstance(sent, str) else None
    return found[1] if found else ""
