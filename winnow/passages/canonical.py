"""The canonical form of a passage: what was said twice in other words is the same passage. Pure.

Names of metadata stand in order, and numbers are doubles, as in a message: 1 and 1.0 are one value.
Titles and texts are taken as they are. A version is no part of it: it says which write counts.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winnow.domain.passage import Passage

_EXACT = 2**53
"""Whole numbers up to this are the same as doubles, and are written without a fraction."""
_DIGEST = 32
"""Bytes of a digest: nobody finds two passages that have the same."""
_FORM = b"winnow passage 1"
"""Another form must have another name, or digests of both would be compared."""
_LENGTH = 8


@dataclass(frozen=True, slots=True)
class PassageDigest:
    """What tells whether a passage is stored already, without its text."""

    id: str
    version: int | None
    digest: bytes


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Metadata as it is stored: a JSON object; empty if there is none."""
    return json.dumps(_canonical(metadata), sort_keys=True) if metadata else ""


def same_content(one: Passage, other: Passage) -> bool:
    """Whether two passages have the same canonical form."""
    if (one.id, one.title, one.text) != (other.id, other.title, other.text):
        return False
    return one.metadata == other.metadata or _again(one.metadata) == _again(other.metadata)


def digest(passage: Passage) -> bytes:
    """A checksum of the canonical form."""
    found = hashlib.blake2b(digest_size=_DIGEST, person=_FORM)
    for field in (passage.id, passage.title, passage.text, _again(passage.metadata)):
        content = field.encode()
        found.update(len(content).to_bytes(_LENGTH, "little"))
        found.update(content)
    return found.digest()


def _again(text: str) -> str:
    """The canonical form of metadata that may have been stored in another one."""
    return metadata_text(json.loads(text)) if text else ""


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _canonical(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) <= _EXACT else number
    return value
