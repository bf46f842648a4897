"""Which passages may be stored, and which deletions are valid. Pure."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stateless.heads.validation import refuse, short
from winnow.domain.feeding import Deletion, FedPassage, Put
from winnow.domain.passage import Passage
from winnow.errors import Violation
from winnow.passages.checks import MAX_ID, has_control

MOST_PASSAGES = 100
"""Of a request."""
MOST_DELETIONS = 1_000
"""Of a request."""
MOST_ID = 256
"""Characters."""
MOST_TITLE = 1_000
"""Characters."""
MOST_TEXT = 10_000
"""Characters."""
MOST_METADATA = 10_000
"""Characters of JSON."""
MOST_TOKENS = 14_000
"""Of a text. Some characters become several tokens; a write has to fit a message of a node."""
_MOST_NAME = 100
"""Characters of the name of a metadata field."""
_MOST_VERSION = 2**63 - 1
"""What a database can hold."""


def validate_puts(passages: Sequence[FedPassage]) -> list[Put]:
    """The passages of a request, in its order. Of several with one id the last one counts.

    Raises:
        InvalidRequestError: naming every field that breaks a rule.

    """
    violations = list(_count("passages", len(passages), MOST_PASSAGES))
    if not violations:
        for number, each in enumerate(passages):
            violations += _passage(f"passages[{number}]", each)
    refuse(violations)
    return [
        Put(Passage(each.id, each.title, each.text, _json(each.metadata)), each.version)
        for each in passages
    ]


def validate_deletions(deletions: Sequence[Deletion]) -> list[Deletion]:
    """The deletions of a request, in its order.

    Raises:
        InvalidRequestError: naming every field that breaks a rule.

    """
    violations = list(_count("deletions", len(deletions), MOST_DELETIONS))
    if not violations:
        for number, each in enumerate(deletions):
            # what was indexed under a longer id than can be fed can still be deleted
            violations += _id(f"deletions[{number}].id", each.id, MAX_ID)
            violations += _version(f"deletions[{number}].version", each.version)
    refuse(violations)
    return list(deletions)


def too_many_tokens(number: int, tokens: int) -> Violation:
    """What is wrong with a text that is short in characters only."""
    return Violation(
        f"passages[{number}].text",
        f"has {tokens} tokens, at most {MOST_TOKENS} are allowed: cut it into passages",
    )


def _count(field: str, count: int, most: int) -> Iterator[Violation]:
    if not count:
        yield Violation(field, f"is empty: send 1 to {most}")
    elif count > most:
        yield Violation(field, f"has {count}, at most {most} are allowed: send several requests")


def _passage(place: str, passage: FedPassage) -> Iterator[Violation]:
    yield from _id(f"{place}.id", passage.id, MOST_ID)
    yield from _length(f"{place}.title", passage.title, MOST_TITLE, "shorten it")
    if not passage.text.strip():
        yield Violation(f"{place}.text", "is empty: write something")
    yield from _length(f"{place}.text", passage.text, MOST_TEXT, "cut it into passages")
    yield from _metadata(f"{place}.metadata", passage.metadata)
    yield from _version(f"{place}.version", passage.version)


def _id(field: str, identifier: str, most: int) -> Iterator[Violation]:
    if not identifier.strip():
        yield Violation(field, f"is empty: name the passage by 1 to {most} characters")
    elif has_control(identifier):
        yield Violation(field, f"{short(identifier)} has a control character")
    yield from _length(field, identifier, most, "shorten it")


def _length(field: str, value: str, most: int, advice: str) -> Iterator[Violation]:
    if len(value) > most:
        yield Violation(field, f"has {len(value)} characters, at most {most} are allowed: {advice}")


def _version(field: str, version: int | None) -> Iterator[Violation]:
    if version is not None and version > _MOST_VERSION:
        yield Violation(field, f"{version} is more than {_MOST_VERSION}")


def _metadata(field: str, metadata: Mapping[str, Any]) -> Iterator[Violation]:
    wrong = []
    for name, value in metadata.items():
        if not name or len(name) > _MOST_NAME:
            wrong.append(f"{short(name)} is no name of 1 to {_MOST_NAME} characters")
        if fault := _wrong_value(value):
            wrong.append(f"{short(name)} {fault}")
    yield from (Violation(field, each) for each in wrong)
    if not wrong:
        yield from _length(field, _json(metadata), MOST_METADATA, "keep less with the passage")


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


def _json(metadata: Mapping[str, Any]) -> str:
    """As it is stored: with the names in order, so that the same metadata is the same text."""
    return json.dumps(metadata, sort_keys=True) if metadata else ""
