"""What a passage may hold that is fed. Pure.

Stricter than what is indexed: a write has to fit a message of a node, and is made while questions
are answered. Front nodes refuse by these rules, and who feeds them looks first.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from winnow.domain.write import Deletion, FedPassage
from winnow.errors import Violation
from winnow.passages.canonical import metadata_text
from winnow.passages.checks import CUT, MAX_ID, MAX_TEXT, has_control
from winnow.quoting import briefly

MOST_ID = 256
"""Characters."""
MOST_TITLE = 1_000
"""Characters."""
MOST_METADATA = 10_000
"""Characters of JSON."""
_MOST_NAME = 100
"""Characters of the name of a metadata field."""
_MOST_VERSION = 2**63 - 1
"""What a database can hold."""


def wrong_passage(passage: FedPassage) -> Iterator[Violation]:
    """Every field of a passage that breaks a rule."""
    yield from _id(passage.id, MOST_ID)
    yield from _length("title", passage.title, MOST_TITLE, "shorten it")
    if not passage.text.strip():
        yield Violation("text", "is empty: write something")
    yield from _length("text", passage.text, MAX_TEXT, CUT)
    yield from _metadata(passage.metadata)
    yield from _version(passage.version)


def wrong_deletion(deletion: Deletion) -> Iterator[Violation]:
    """Every field of a deletion that breaks a rule."""
    # what was indexed under a longer id than can be fed can still be deleted
    yield from _id(deletion.id, MAX_ID)
    yield from _version(deletion.version)


def _id(identifier: str, most: int) -> Iterator[Violation]:
    if not identifier.strip():
        yield Violation("id", f"is empty: name the passage by 1 to {most} characters")
    elif has_control(identifier):
        yield Violation("id", f"{briefly(identifier)} has a control character")
    yield from _length("id", identifier, most, "shorten it")


def _length(field: str, value: str, most: int, advice: str) -> Iterator[Violation]:
    if len(value) > most:
        yield Violation(field, f"has {len(value)} characters, at most {most} are allowed: {advice}")


def _version(version: int | None) -> Iterator[Violation]:
    if version is not None and version > _MOST_VERSION:
        yield Violation("version", f"{version} is more than {_MOST_VERSION}")


def _metadata(metadata: Mapping[str, Any]) -> Iterator[Violation]:
    wrong = []
    for name, value in metadata.items():
        if not name or len(name) > _MOST_NAME:
            wrong.append(f"{briefly(name)} is no name of 1 to {_MOST_NAME} characters")
        if fault := _wrong_value(value):
            wrong.append(f"{briefly(name)} {fault}")
    yield from (Violation("metadata", each) for each in wrong)
    if not wrong:
        yield from _length(
            "metadata", metadata_text(metadata), MOST_METADATA, "keep less with the passage"
        )


def _wrong_value(value: Any, inside: bool = False) -> str:
    """What is wrong with a value of metadata; empty if nothing is."""
    if isinstance(value, float) and not math.isfinite(value):
        return "is no number that JSON has"
    if isinstance(value, (str, bool, int, float)):
        return ""
    if isinstance(value, (list, tuple)) and not inside:
        return next(filter(None, (_wrong_value(each, inside=True) for each in value)), "")
    kind = "null" if value is None else "an object" if isinstance(value, Mapping) else "a list"
    holder = "has in its list" if inside else "is"
    return f"{holder} {kind}: give a string, a number, true, false, or a list of these"
