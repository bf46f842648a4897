"""What a passage may hold. Pure.

A passage comes back to users in a gRPC message, its metadata as `google.protobuf.Struct`, so what
could not be sent is refused while the index is built.
"""

import math
from typing import Any

from winnow.domain.passage import Passage

MAX_ID = 512
"""Characters."""
MAX_TITLE = 10_000
"""Characters."""
MAX_TEXT = 10_000
"""Characters, built or fed. A write has to fit a message of a node, and a reader needs seconds."""
CUT = "cut it into passages, as --cut does"
"""What to do with a longer text."""
MAX_METADATA = 100_000
"""Characters of JSON."""
MAX_DEPTH = 20
"""Levels of metadata; protobuf gives up at about 33."""
_DELETE = 127


class RowError(ValueError):
    """Why a row is no passage."""


def check_passage(passage: Passage) -> None:
    """Raises RowError if this cannot be a passage."""
    check_legible(passage)
    place = f" (id {passage.id})"
    _check_length("title", passage.title, MAX_TITLE, f"shorten it{place}")
    _check_length("text", passage.text, MAX_TEXT, f"{CUT}{place}")


def check_legible(passage: Passage) -> None:
    """Raises RowError if a passage of any length has no id or text, or no valid characters."""
    check_id(passage.id)
    place = f" (id {passage.id})"
    if not passage.text.strip():
        raise RowError(f"empty text{place}")
    if not all(map(_is_unicode, (passage.id, passage.title, passage.text))):
        raise RowError(f"lone surrogate, not valid Unicode{place}")


def check_id(identifier: str) -> None:
    """Raises RowError if this cannot name a passage."""
    if not identifier.strip():
        raise RowError("empty id")
    _check_length("id", identifier, MAX_ID, "shorten it")
    if has_control(identifier):
        raise RowError(f"control character in the id {identifier!r}")


def has_control(text: str) -> bool:
    """Whether a control character is in it."""
    return any(ord(character) < ord(" ") or ord(character) == _DELETE for character in text)


def check_metadata(value: Any, depth: int = 1) -> None:
    """Raises RowError if `value`, out of JSON, cannot be sent as metadata."""
    if depth > MAX_DEPTH:
        raise RowError(f"metadata is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for name, inner in value.items():
            check_metadata(name, depth)
            check_metadata(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            check_metadata(inner, depth + 1)
    elif isinstance(value, str):
        if not _is_unicode(value):
            raise RowError("lone surrogate in metadata, not valid Unicode")
    elif not _is_finite(value):
        raise RowError("a number in metadata is too large: write it as a string")


def check_metadata_length(text: str) -> None:
    """Raises RowError if metadata is too long as JSON."""
    _check_length("metadata", text, MAX_METADATA, "keep less with the passage")


def _check_length(name: str, value: str, most: int, advice: str) -> None:
    if len(value) > most:
        raise RowError(f"{name} has {len(value):,} characters, at most {most:,}: {advice}")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_finite(value: float | None) -> bool:
    try:
        return value is None or math.isfinite(value)
    except OverflowError:
        return False
