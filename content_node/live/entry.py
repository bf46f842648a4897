"""A write as the log holds it. Pure.

What is derived of a passage stays packed, as it arrives, is stored and is merged: a hundred tokens
as Python's integers take fifty times the room.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from winnow.domain.write import EncodedPassage

CHAIN = 16
"""Bytes of a link of the chain."""
TOKEN_BYTES = 4
_NOTHING = -1
_HEAD = struct.Struct("<QqB9q")


@dataclass(frozen=True, slots=True)
class PackedPassage:
    """A passage as a row of a database; see the schema of `content_node.shard.store`."""

    title: str
    text: str
    metadata: str
    """A JSON object; empty if there is none."""
    title_tokens: bytes
    """Little-endian uint32, as the next two."""
    text_tokens: bytes
    text_offsets: bytes
    vector: bytes
    """Little-endian float32."""

    @property
    def words(self) -> bytes:
        """All tokens that count as its words, little-endian uint32."""
        return self.title_tokens + self.text_tokens


@dataclass(frozen=True, slots=True)
class Logged:
    """A write that changed the shard, and what it changed."""

    sequence: int
    """Counted from 1 over the life of the log, without gaps."""
    id: str
    version: int | None
    put: PackedPassage | None
    """None deletes."""
    removed: bytes | None
    """Words of the passage that was there before; None if there was none."""


def link(before: bytes, write: Logged) -> bytes:
    """The checksum of a write and of all before it: `before` is that of the last one."""
    put = write.put
    parts: list[bytes | None] = [write.id.encode(), write.removed]
    if put is not None:
        parts += [put.title.encode(), put.text.encode(), put.metadata.encode()]
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
    """What the chain of a log begins with whose first write comes after `sequence`."""
    return hashlib.blake2b(f"{log_id} {sequence}".encode(), digest_size=CHAIN).digest()


def packed(encoded: EncodedPassage) -> PackedPassage:
    """A passage as the log holds it."""
    passage, tokens = encoded.passage, encoded.tokens
    return PackedPassage(
        passage.title,
        passage.text,
        passage.metadata,
        _bytes(encoded.title_ids),
        _bytes(tokens.ids),
        _bytes(tuple(chain.from_iterable(tokens.offsets))),
        np.ascontiguousarray(encoded.vector, "<f4").tobytes(),
    )


def ids_of(words: bytes) -> NDArray[np.uint32]:
    """Tokens that were packed."""
    return np.frombuffer(words, "<u4")


def _bytes(values: Sequence[int]) -> bytes:
    # three times as fast as by way of an array
    return struct.pack(f"<{len(values)}I", *values)
