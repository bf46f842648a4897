"""Converts manual pages, as `man` shows them, to documents with structure."""

import re

from winnow.documents.document import BlockKind, Document, DocumentBuilder

_TAG = re.compile(r"(?P<tag>\S(?:.*?\S)?)(?:\s{2,}(?P<text>\S.*))?$")
"""The tag of an entry in a list, and the beginning of its text if that is on the same line."""
_BULLETS = ("\u2022", "\u00b7", "*", "o", "-")
_TEXT_INDENT, _MAX_SHORT_TAG = 7, 23
"""Columns before a section's text, and length of the longest tag with text on the same line."""


def read_manual(text: str, name: str) -> Document:
    """Returns a manual page as a document. An entry of a list becomes an item `tag: meaning`."""
    builder = DocumentBuilder()
    for chunk in _chunks(text.splitlines()[1:-1]):
        indent = _indent(chunk[0])
        if indent < _TEXT_INDENT:
            builder.add(BlockKind.HEADING, chunk[0], level=1 + (indent > 0))
            _add(builder, chunk[1:])
        else:
            _add(builder, chunk)
    return builder.build(name)


def _chunks(lines: list[str]) -> list[list[str]]:
    """Returns the groups of lines between blank lines."""
    chunks: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            chunks[-1].append(line)
        elif chunks[-1]:
            chunks.append([])
    return [chunk for chunk in chunks if chunk]


def _add(builder: DocumentBuilder, chunk: list[str]) -> None:
    if not chunk:
        return
    first, *rest = chunk
    match = _TAG.match(first.strip())
    assert match is not None, "a chunk has no blank lines"
    tag, text = match["tag"], " ".join((match["text"] or "", *rest))
    is_short = match["text"] is not None and len(tag) <= _MAX_SHORT_TAG
    is_followed = bool(rest) and _indent(rest[0]) > _indent(first)
    if tag in _BULLETS and match["text"]:
        builder.add(BlockKind.LIST_ITEM, text, level=1)
    elif is_short or is_followed:
        builder.add(BlockKind.LIST_ITEM, f"{tag}: {text}", level=1)
    else:
        builder.add(BlockKind.PARAGRAPH, " ".join(chunk))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
