"""What a passage and a deletion may hold: one set of limits for building and for feeding. Pure.

A passage has to fit a message of a node, and it comes back to users in a gRPC message with its
metadata as `google.protobuf.Struct`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from winnow.domain.write import Deletion, FedPassage
from winnow.errors import Violation
from winnow.passages.canonical import metadata_text
from winnow.quoting import briefly

MAX_ID = 256
"""Characters of an id."""
MAX_DELETED_ID = 512
"""Characters of an id that is deleted. Earlier versions built indexes with ids of this length."""
MAX_TITLE = 1_000
"""Characters of a title."""
MAX_TEXT = 10_000
"""Characters of a text."""
MAX_METADATA = 10_000
"""Characters of metadata as JSON."""
MAX_VERSION = 2**63 - 1
"""The greatest version that a database can hold."""
CUT = "cut it into passages, as --cut does"
"""The advice for a longer text."""
MAX_DEPTH = 20
"""Levels of metadata; protobuf gives up at about 33."""
_MAX_NAME = 100
"""Characters of the name of a metadata field."""
_DELETE = 127


def passage_violations(passage: FedPassage) -> Iterator[Violation]:
    """Every field of a passage that breaks a rule."""
    yield from _id(passage.id, MAX_ID)
    yield from _text("title", passage.title, MAX_TITLE, "shorten it")
    if not passage.text.strip():
        yield Violation("text", "is empty: write something")
    yield from _text("text", passage.text, MAX_TEXT, CUT)
    yield from _metadata(passage.metadata)
    yield from _version(passage.version)


def deletion_violations(deletion: Deletion) -> Iterator[Violation]:
    """Every field of a deletion that breaks a rule."""
    yield from _id(deletion.id, MAX_DELETED_ID)
    yield from _version(deletion.version)


def _id(identifier: str, most: int) -> Iterator[Violation]:
    if not identifier.strip():
        yield Violation("id", f"is empty: name the passage by 1 to {most} characters")
    elif any(character < " " or ord(character) == _DELETE for character in identifier):
        yield Violation("id", f"{briefly(identifier)} has a control character")
    yield from _text("id", identifier, most, "shorten it")


def _text(field: str, value: str, most: int, advice: str) -> Iterator[Violation]:
    if len(value) > most:
        yield Violation(field, f"has {len(value)} characters, at most {most} are allowed: {advice}")
    if not is_unicode(value):
        yield Violation(field, "has a lone surrogate, which is not valid Unicode")


def _version(version: int | None) -> Iterator[Violation]:
    if version is not None and version > MAX_VERSION:
        yield Violation("version", f"{version} is more than {MAX_VERSION}")


def _metadata(metadata: Mapping[str, Any]) -> Iterator[Violation]:
    wrong = []
    for name, value in metadata.items():
        if not name or len(name) > _MAX_NAME or not is_unicode(name):
            wrong.append(f"{briefly(name)} is no name of 1 to {_MAX_NAME} characters")
        if fault := _value_fault(value):
            wrong.append(f"{briefly(name)} {fault}")
    yield from (Violation("metadata", each) for each in wrong)
    if not wrong:
        yield from _text(
            "metadata", metadata_text(metadata), MAX_METADATA, "keep less with the passage"
        )


def _value_fault(value: Any, depth: int = 2) -> str:
    """What is wrong with a value of metadata; empty if it is valid."""
    if depth > MAX_DEPTH:
        return f"is nested deeper than {MAX_DEPTH} levels"
    inner: Iterable[Any] = ()
    if isinstance(value, str):
        return "" if is_unicode(value) else "has a lone surrogate, which is not valid Unicode"
    if isinstance(value, (int, float)) and not _is_finite(value):
        return "has a number that is infinite or too large: write it as a string"
    if isinstance(value, Mapping):
        inner = (*value, *value.values())
    elif isinstance(value, (list, tuple)):
        inner = value
    return next(filter(None, (_value_fault(each, depth + 1) for each in inner)), "")


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can encode the text: whether it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
