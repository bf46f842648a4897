"""The canonical form of a passage: the same for passages that differ only in notation. Pure.

Metadata fields are sorted, and numbers are doubles as in messages, so 1 and 1.0 are equal. Titles
and texts are unchanged. The version, which orders writes, is not part of the form.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winnow.domain.passage import Passage
from winnow.domain.tenant import stored_id
from winnow.domain.write import FedPassage, Put

_MAX_EXACT_INTEGER = 2**53
"""Integers up to this limit are exact as doubles, and are written without a fraction."""
_DIGEST_BYTES = 32
"""Length of a digest; long enough that collisions cannot be found."""
_FORM_NAME = b"winnow passage 1"
"""Name of the canonical form. A changed form needs a new name, so that its digests match no others.
"""
_LENGTH_BYTES = 8
"""Size of the length that precedes each digested field."""


@dataclass(frozen=True, slots=True)
class PassageDigest:
    """The digest of a passage, by which a shard finds out whether it already stores the passage."""

    id: str
    version: int | None
    digest: bytes


def canonical(passage: FedPassage) -> Put:
    """Returns the canonical form of a valid passage, with its stored id and its version."""
    metadata, identifier = metadata_text(passage.metadata), stored_id(passage.tenant, passage.id)
    return Put(Passage(identifier, passage.title, passage.text, metadata), passage.version)


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Serialises metadata to canonical JSON; empty metadata to an empty string."""
    return json.dumps(_canonical(metadata), sort_keys=True) if metadata else ""


def same_content(one: Passage, other: Passage) -> bool:
    """Returns whether two passages have the same canonical form."""
    if (one.id, one.title, one.text) != (other.id, other.title, other.text):
        return False
    return one.metadata == other.metadata or _normalised(one.metadata) == _normalised(
        other.metadata
    )


def digest(passage: Passage) -> bytes:
    """Returns a checksum of the canonical form."""
    checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES, person=_FORM_NAME)
    for field in (passage.id, passage.title, passage.text, _normalised(passage.metadata)):
        content = field.encode()
        checksum.update(len(content).to_bytes(_LENGTH_BYTES, "little"))
        checksum.update(content)
    return checksum.digest()


def _normalised(text: str) -> str:
    """Converts stored metadata to its canonical form; older versions stored other forms."""
    return metadata_text(json.loads(text)) if text else ""


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _canonical(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) <= _MAX_EXACT_INTEGER else number
    return value
