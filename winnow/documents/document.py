"""A converted document: plain text, and the blocks that structure it. Pure."""

import re
from dataclasses import KW_ONLY, dataclass
from enum import Enum


class BlockKind(Enum):
    """The kind of a block of text."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list item"
    TABLE_ROW = "table row"
    CODE = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of a document, such as a paragraph, as a range of the document's text."""

    kind: BlockKind
    start: int
    """Offset of the first character, in code points."""
    end: int
    """Offset after the last character."""
    level: int = 0
    """Level of a heading, from 1; nesting depth of a list item, from 1; otherwise 0."""
    page: int | None = None
    """Number of the page or slide on which the block begins, from 1; None without pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPassage:
    """A passage of a document, as a range of the document's text."""

    start: int
    """Offset of the first character, in code points."""
    end: int
    """Offset after the last character."""
    headings: tuple[str, ...]
    """Headings above the passage, the outermost first; see `winnow.documents.cutting`."""
    page: int | None
    """Number of the page on which the passage begins, from 1; None without pages."""


@dataclass(frozen=True, slots=True)
class Document:
    """A converted document."""

    title: str
    """The document's title; empty if it has none."""
    text: str
    """The text of all blocks, in reading order."""
    blocks: tuple[Block, ...]
    """Blocks in the order of the text. Blocks do not overlap, and none is empty."""
    _: KW_ONLY
    format: str = ""
    """Name of the file's format, such as `PDF`."""
    notes: tuple[str, ...] = ()
    """What the conversion left out, such as `3 of 10 pages have no text`."""
    passages: tuple[CutPassage, ...] | None = None
    """The passages, in the order of the text; None if the document was not cut."""
    sha256: str = ""
    """SHA-256 of the file's content, in hexadecimal; empty if unknown."""


_UNPRINTABLE = re.compile(
    # controls, soft hyphens, zero-width spaces, byte order marks, surrogates, noncharacters
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ud800-\udfff\ufffe\uffff]"
)


class DocumentBuilder:
    """Joins blocks to a document, in the order in which they are added."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._length = 0

    def add(self, kind: BlockKind, text: str, *, level: int = 0, page: int | None = None) -> None:
        """Adds a block. Ignores text without printable characters.

        Removes space at both ends and unprintable characters. Runs of space become one space,
        except in code.
        """
        text = _UNPRINTABLE.sub("", text)
        text = text.strip() if kind is BlockKind.CODE else " ".join(text.split())
        if not text:
            return
        if self._blocks:
            self._append(_separator(self._blocks[-1].kind, kind))
        start = self._length
        self._append(text)
        block = Block(kind=kind, start=start, end=self._length, level=level, page=page)
        self._blocks.append(block)

    def build(self, title: str, *, notes: tuple[str, ...] = ()) -> Document:
        """Returns the document."""
        title = " ".join(_UNPRINTABLE.sub("", title).split())
        return Document(title, "".join(self._parts), tuple(self._blocks), notes=notes)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def _separator(previous: BlockKind, kind: BlockKind) -> str:
    """Returns what separates two blocks: items of a list and rows of a table stay together."""
    together = kind in (BlockKind.LIST_ITEM, BlockKind.TABLE_ROW) and kind is previous
    return "\n" if together else "\n\n"
