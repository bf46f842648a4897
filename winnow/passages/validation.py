"""Validates passages and deletions, with the same limits for building and feeding. Pure.

Passages must fit a gRPC message, and their metadata a `google.protobuf.Struct`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from winnow.domain.write import Deletion, FedPassage
from winnow.errors import Violation
from winnow.passages.canonical import metadata_text
from winnow.quoting import briefly

MAX_ID = 256
"""Limit of characters of an id."""
MAX_DELETED_ID = 512
"""Limit of characters of a deleted id. Earlier versions built indexes with such long ids."""
MAX_TITLE = 1_000
"""Limit of characters of a title."""
MAX_TEXT = 10_000
"""Limit of characters of a text."""
MAX_METADATA = 10_000
"""Limit of characters of metadata as JSON."""
MAX_VERSION = 2**63 - 1
"""Limit of versions: the greatest integer of SQLite."""
CUT = "cut it into passages, as --cut does"
"""Advice for a text that is too long."""
MAX_DEPTH = 20
"""Limit of nested levels of metadata; protobuf fails at about 33."""
_MAX_NAME = 100
"""Limit of characters of the name of a metadata field."""
_DELETE_CHARACTER = 127


def passage_violations(passage: FedPassage) -> Iterator[Violation]:
    """Yields the violations of a passage."""
    yield from _id_violations(passage.id, MAX_ID)
    yield from _text_violations("title", passage.title, MAX_TITLE, "shorten it")
    if not passage.text.strip():
        yield Violation("text", "is empty: a passage needs a text")
    yield from _text_violations("text", passage.text, MAX_TEXT, CUT)
    yield from _metadata_violations(passage.metadata)
    yield from _version_violations(passage.version)


def deletion_violations(deletion: Deletion) -> Iterator[Violation]:
    """Yields the violations of a deletion."""
    yield from _id_violations(deletion.id, MAX_DELETED_ID)
    yield from _version_violations(deletion.version)


def _id_violations(identifier: str, max_length: int) -> Iterator[Violation]:
    if not identifier.strip():
        yield Violation("id", f"is empty: give an id of 1 to {max_length} characters")
    elif any(character < " " or ord(character) == _DELETE_CHARACTER for character in identifier):
        yield Violation("id", f"{briefly(identifier)} has a control character")
    yield from _text_violations("id", identifier, max_length, "shorten it")


def _text_violations(field: str, value: str, max_length: int, advice: str) -> Iterator[Violation]:
    if len(value) > max_length:
        yield Violation(
            field, f"has {len(value)} characters, at most {max_length} are allowed: {advice}"
        )
    if not is_unicode(value):
        yield Violation(field, "has a lone surrogate, which is not valid Unicode")


def _version_violations(version: int | None) -> Iterator[Violation]:
    if version is not None and version > MAX_VERSION:
        yield Violation("version", f"{version} is more than {MAX_VERSION}")


def _metadata_violations(metadata: Mapping[str, Any]) -> Iterator[Violation]:
    problems = []
    for name, value in metadata.items():
        if not name or len(name) > _MAX_NAME or not is_unicode(name):
            problems.append(f"{briefly(name)} is not a name of 1 to {_MAX_NAME} characters")
        if problem := _value_problem(value):
            problems.append(f"{briefly(name)} {problem}")
    yield from (Violation("metadata", each) for each in problems)
    if not problems:
        yield from _text_violations(
            "metadata", metadata_text(metadata), MAX_METADATA, "store less metadata"
        )


def _value_problem(value: Any, depth: int = 2) -> str:
    """Describes what is wrong with a value of metadata; empty if it is valid."""
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
    return next(filter(None, (_value_problem(each, depth + 1) for each in inner)), "")


def is_too_deep(metadata: Any, depth: int = 1) -> bool:
    """Whether metadata is nested deeper than `MAX_DEPTH` levels, or contains itself."""
    if depth > MAX_DEPTH:
        return True
    inner: Iterable[Any] = metadata if isinstance(metadata, (list, tuple)) else ()
    if isinstance(metadata, Mapping):
        inner = metadata.values()
    return any(is_too_deep(each, depth + 1) for each in inner)


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
