"""A write as the log stores it, and the checksums that chain writes. Pure."""

import hashlib
import struct
from dataclasses import dataclass, replace

from winnow.domain.write import EncodedPassage

LINK_BYTES = 16
"""Bytes of a link, the checksum of a write and of all writes before it."""
_ABSENT = -1
_MAX_PARTS = 9
_HEADER = struct.Struct(f"<QqB{_MAX_PARTS}q")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedWrite:
    """A write that changed the shard."""

    sequence: int
    """The number of the write, counted from 1 over the life of the log without gaps."""
    id: str
    version: int | None
    """The version that the caller gave; None without one."""
    put: EncodedPassage | None
    """The passage that was put; None for a deletion."""
    removed_words: bytes | None
    """Packed words of the passage that the write replaced or deleted; None if there was none."""

    def as_no_op(self) -> "LoggedWrite":
        """Returns a write with this number and no effect: a deletion of a missing passage."""
        return replace(self, version=None, put=None, removed_words=None)


def next_link(previous: bytes, write: LoggedWrite) -> bytes:
    """Returns the checksum of a write and of all writes before it.

    `previous` is the link of the write before.
    """
    put = write.put
    parts: list[bytes | None] = [write.id.encode(), write.removed_words]
    if put is not None:
        passage = put.passage
        parts += [passage.title.encode(), passage.text.encode(), passage.metadata.encode()]
        parts += [put.title_tokens, put.text_tokens, put.text_offsets, put.vector]
    lengths = [_ABSENT if part is None else len(part) for part in parts]
    header = _HEADER.pack(
        write.sequence,
        _ABSENT if write.version is None else write.version,
        put is not None,
        *lengths,
        *[_ABSENT] * (_MAX_PARTS - len(parts)),
    )
    return hashlib.blake2b(
        b"".join([previous, header, *(part for part in parts if part)]), digest_size=LINK_BYTES
    ).digest()


def first_link(log_id: str, sequence: int) -> bytes:
    """Returns the link (chained hash) before a log's first write, which has the number
    `sequence` + 1.
    """
    return hashlib.blake2b(f"{log_id} {sequence}".encode(), digest_size=LINK_BYTES).digest()
