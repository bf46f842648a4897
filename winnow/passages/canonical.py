"""The canonical form of a passage: two passages that differ only in notation have the same. Pure.

Names of metadata are sorted, and numbers are doubles, as in a message: 1 and 1.0 are one value.
Titles and texts stay as they are. The version is not a part of it: it says which write counts.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winnow.domain.passage import Passage
from winnow.domain.write import FedPassage, Put

_EXACT = 2**53
"""Whole numbers up to this are the same as doubles, and are written without a fraction."""
_DIGEST = 32
"""Bytes of a digest: enough that nobody finds two passages with the same one."""
_FORM = b"winnow passage 1"
"""The name of the form. Another form needs another name, so that digests of both never match."""
_LENGTH = 8
"""Bytes of the length before each field that is digested."""


@dataclass(frozen=True, slots=True)
class PassageDigest:
    """The digest of a passage: a shard tells by it whether the passage is stored already."""

    id: str
    version: int | None
    digest: bytes


def canonical(passage: FedPassage) -> Put:
    """The canonical form of a valid passage, with its version."""
    metadata = metadata_text(passage.metadata)
    return Put(Passage(passage.id, passage.title, passage.text, metadata), passage.version)


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Metadata as it is stored: a JSON object; empty if there is none."""
    return json.dumps(_canonical(metadata), sort_keys=True) if metadata else ""


def same_content(one: Passage, other: Passage) -> bool:
    """Whether two passages have the same canonical form."""
    if (one.id, one.title, one.text) != (other.id, other.title, other.text):
        return False
    return one.metadata == other.metadata or _normalised(one.metadata) == _normalised(
        other.metadata
    )


def digest(passage: Passage) -> bytes:
    """A checksum of the canonical form."""
    found = hashlib.blake2b(digest_size=_DIGEST, person=_FORM)
    for field in (passage.id, passage.title, passage.text, _normalised(passage.metadata)):
        content = field.encode()
        found.update(len(content).to_bytes(_LENGTH, "little"))
        found.update(content)
    return found.digest()


def _normalised(text: str) -> str:
    """The canonical form of stored metadata: an earlier version may have stored another form."""
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
