"""The messages between a converter and its worker processes.

A request is a line of JSON. A reply is its length and JSON: not pickles, which would let a worker
that a hostile file took over run code in the converter.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from winnow.documents.document import Block, BlockKind, CutPassage, Document
from winnow.documents.failures import ConversionFailure, FailureReason

Converted = Document | ConversionFailure
"""What became of a file."""
MAX_FILE_BYTES = 200_000_000
"""Default limit of the size of a file."""
LENGTH = struct.Struct("<Q")
"""The length of a reply in bytes, which precedes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionLimits:
    """Limits of the conversion of a file. A file that exceeds one is a failure."""

    seconds: float = 120
    memory_bytes: int = 2_000_000_000
    """Address space of a worker process; about 100 MB are Python's own. Linux enforces it."""
    file_bytes: int = MAX_FILE_BYTES
    characters: int = 20_000_000
    """Length of the document's text."""
    passages: int = 100_000
    """Number of passages into which the text is cut."""

    def to_json(self) -> str:
        """Returns the limits as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Returns the limits of `to_json`."""
        return cls(**json.loads(text))


def request_line(path: Path) -> bytes:
    """Returns the request to convert a file."""
    return json.dumps(str(path)).encode() + b"\n"


def requested_path(line: bytes) -> Path:
    """Returns the path of a request."""
    return Path(json.loads(line))


def reply_bytes(converted: Converted) -> bytes:
    """Serialises a reply. The length that is sent before it is not included."""
    if isinstance(converted, ConversionFailure):
        reply: dict[str, Any] = {"reason": converted.reason.value, "detail": converted.detail}
    else:
        blocks = [(b.kind.value, b.start, b.end, b.level, b.page) for b in converted.blocks]
        reply = {
            "title": converted.title,
            "text": converted.text,
            "blocks": blocks,
            "format": converted.format,
            "notes": converted.notes,
            "passages": _section_values(converted.passages or ()),
            "sha256": converted.sha256,
        }
    return json.dumps(reply, ensure_ascii=False).encode(errors="replace")


def parse_reply(content: bytes) -> Converted:
    """Returns the result in a reply; raises ValueError, KeyError or TypeError if it is invalid."""
    reply: Mapping[str, Any] = json.loads(content)
    if "reason" in reply:
        return ConversionFailure(FailureReason(reply["reason"]), reply["detail"])
    kinds = {kind.value: kind for kind in BlockKind}
    blocks = tuple(
        Block(kind=kinds[kind], start=start, end=end, level=level, page=page)
        for kind, start, end, level, page in reply["blocks"]
    )
    return Document(
        reply["title"],
        reply["text"],
        blocks,
        format=reply["format"],
        notes=tuple(reply["notes"]),
        passages=tuple(
            CutPassage(start=start, end=end, headings=tuple(headings), page=page)
            for headings, ranges in reply["passages"]
            for start, end, page in ranges
        ),
        sha256=reply["sha256"],
    )


def _section_values(passages: Sequence[CutPassage]) -> list[Any]:
    """Returns the values of passages, with the headings of each section only once."""
    sections = groupby(passages, key=lambda each: each.headings)
    return [(headings, [(p.start, p.end, p.page) for p in own]) for headings, own in sections]
