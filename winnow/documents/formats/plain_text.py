"""Converts plain text: paragraphs, list items and headings are told apart by their form."""

import re
from collections.abc import Iterator, Sequence

from winnow.documents.document import BlockKind, Document, DocumentBuilder
from winnow.documents.formats.decoding import decode
from winnow.documents.formats.page_edges import edge_lines

_ITEM = re.compile(r"\s*(?:[-*+•·\u2013]|o(?= {2})|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S)")
"""Begin of a list item."""
_BULLET = re.compile(r"\s*(?:[-*+•·\u2013]|o(?= {2}))\s+")
"""Begin of a list item that says nothing, and is left out."""
_UNDERLINE = re.compile(r"\s*([=\-~^\"#*+])\1{2,}\s*")
_UNDERLINES = "=-~^"
"""Characters that underline headings, by level."""
_NUMBERED = re.compile(r"((?:\d{1,2}|[A-Z](?=\.))(?:\.\d{1,3}){0,4})\.? {1,4}[^\W\d].*[^.,;:?!]")
"""A heading with its number."""
_CAPITALS = re.compile(r"[A-Z][A-Z0-9 ,&/()'-]{2,59}")
_MAX_HEADING = 90
"""Limit of characters of a heading."""
_CONTENTS = re.compile(r".*(?:\. ?){4,}\s*\w+\s*")
"""An entry of a table of contents, with dots before the page number. Takes quadratic time."""
_MAX_ENTRY = 200
"""Limit of characters of such an entry."""
_ALIGNED = re.compile(r"\S {3,}\S|[|+]\s*$|[│├└─═]|^\s*\|")
"""Signs of a table or drawing, whose lines must not be joined."""
_SENTENCE_END = re.compile(r"[.!?:;][\"')\]]*$")


def convert(data: bytes) -> Document:
    """Converts a file. Form feeds separate pages."""
    builder = DocumentBuilder()
    pages = [page.split("\n") for page in decode(data).expandtabs().split("\f")]
    while len(pages) > 1 and not any(line.strip() for line in pages[-1]):
        pages.pop()
    for number, lines in _paragraphs(pages):
        _add(builder, lines, number if len(pages) > 1 else None)
    return builder.build("")


def joined(lines: Sequence[str]) -> str:
    """Joins the lines of a paragraph; a hyphen at the end of a line stays and ends no word."""
    text = ""
    for line in lines:
        line = line.strip()  # noqa: PLW2901
        joins = not text or (text.endswith("-") and text[-2:-1].isalpha() and line[:1].isalpha())
        text += line if joins else f" {line}"
    return text


def _paragraphs(pages: Sequence[Sequence[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yields each paragraph with the number of its page; joins those that pages interrupt."""
    paragraph: list[str] = []
    begun = 1
    for number, (page, edges) in enumerate(zip(pages, edge_lines(pages), strict=True), 1):
        lines = [line.rstrip() for index, line in enumerate(page) if index not in edges]
        lines = "\n".join(lines).strip("\n").split("\n")
        begins = lines[0].lstrip()[:1].islower()
        if paragraph and not (begins and not _SENTENCE_END.search(paragraph[-1])):
            yield begun, paragraph
            paragraph = []
        for line in lines:
            if line:
                begun = begun if paragraph else number
                paragraph.append(line)
            elif paragraph:
                yield begun, paragraph
                paragraph = []
    if paragraph:
        yield begun, paragraph


def _add(builder: DocumentBuilder, lines: list[str], page: int | None) -> None:
    """Adds a paragraph as a heading, code, list items or text, depending on its layout."""
    lines = [line for line in lines if len(line) > _MAX_ENTRY or not _CONTENTS.fullmatch(line)]
    if len(lines) > 1 and _is_underlined(lines[0], lines[1]):
        level = _UNDERLINES.find(lines[1].strip()[0]) + 1 or len(_UNDERLINES) + 1
        builder.add(BlockKind.HEADING, lines[0], level=level, page=page)
        lines = lines[2:]
    if not lines:
        return
    if len(lines) == 1 and (level := _heading_level(lines[0])):
        builder.add(BlockKind.HEADING, lines[0], level=level, page=page)
    elif sum(bool(_ALIGNED.search(line)) for line in lines) * 2 > len(lines) > 1:
        builder.add(BlockKind.CODE, "\n".join(lines), page=page)
    elif any(_ITEM.match(line) for line in lines[:2]):
        _add_items(builder, lines, page)
    else:
        builder.add(BlockKind.PARAGRAPH, joined(lines), page=page)


def _is_underlined(line: str, following: str) -> bool:
    width = len(line.strip())
    is_underline = _UNDERLINE.fullmatch(following) and len(following.strip()) * 2 >= width
    return bool(is_underline) and not _UNDERLINE.fullmatch(line) and width <= _MAX_HEADING


def _heading_level(line: str) -> int:
    """Returns the level of a line that stands alone; 0 if it is no heading."""
    if len(line) > _MAX_HEADING or line[0].isspace():
        return 0
    if match := _NUMBERED.fullmatch(line):
        return match[1].count(".") + 1
    return 1 if _CAPITALS.fullmatch(line) else 0


def _add_items(builder: DocumentBuilder, lines: list[str], page: int | None) -> None:
    """Adds the items of a list, and the line before it if there is one."""
    items: list[list[str]] = []
    for line in lines:
        if _ITEM.match(line) or not items:
            items.append([line])
        else:
            items[-1].append(line)
    indents = sorted({_indent(item[0]) for item in items if _ITEM.match(item[0])})
    for item in items:
        if not _ITEM.match(item[0]):
            builder.add(BlockKind.PARAGRAPH, joined(item), page=page)
            continue
        level = indents.index(_indent(item[0])) + 1
        bullet = _BULLET.match(item[0])
        text = joined([item[0][bullet.end() :] if bullet else item[0], *item[1:]])
        builder.add(BlockKind.LIST_ITEM, text, level=level, page=page)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
