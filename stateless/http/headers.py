"""Headers of requests, as pairs of texts: the form that gRPC has for metadata; and of replies."""

from collections.abc import Iterable

Headers = tuple[tuple[str, str], ...]

ALWAYS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Of every reply, unless it has its own."""


def text_of(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers as ASGI gives them; their names are in lower case."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)


def find(headers: Headers, name: str) -> str:
    """The first value of a header; empty if there is none."""
    return next((value for key, value in headers if key == name), "")
