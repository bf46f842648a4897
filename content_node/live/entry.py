"""A write as the log holds it. Pure."""

import hashlib
import struct
from dataclasses import dataclass

from winnow.domain.write import EncodedPassage

CHAIN = 16
"""Bytes of a link of the chain."""
_NOTHING = -1
_HEAD = struct.Struct("<QqB9q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A write that changed the shard, and what it changed."""

    sequence: int
    """The number of the write, counted from 1 over the life of the log without gaps."""
    id: str
    version: int | None
    put: EncodedPassage | None
    """The passage that was put; None for a deletion."""
    removed: bytes | None
    """Words of the passage that was there before; None if there was none."""


def link(before: bytes, write: Logged) -> bytes:
    """The checksum of a write and of all writes before it; `before` is the last checksum."""
    put = write.put
    parts: list[bytes | None] = [write.id.encode(), write.removed]
    if put is not None:
        passage = put.passage
        parts += [passage.title.encode(), passage.text.encode(), passage.metadata.encode()]
        parts += [put.title_tokens, put.text_tokens, put.text_offsets, put.vector]
    lengths = [_NOTHING if part is None else len(part) for part in parts]
    head = _HEAD.pack(
        write.sequence,
        _NOTHING if write.version is None else write.version,
        put is not None,
        *lengths,
        *[_NOTHING] * (9 - len(parts)),
    )
    return hashlib.blake2b(
        b"".join([before, head, *(part for part in parts if part)]), digest_size=CHAIN
    ).digest()


def first_link(log_id: str, sequence: int) -> bytes:
    """The beginning of the chain of a log whose first write comes after `sequence`."""
    return hashlib.blake2b(f"{log_id} {sequence}".encode(), digest_size=CHAIN).digest()
