"""Converts Word files (WordprocessingML of ECMA-376).

Keeps inserted text and leaves out deleted text, headers, footers and comments. Files do not say
where pages begin.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from winnow.documents.document import BlockKind, Document, DocumentBuilder
from winnow.documents.formats import office
from winnow.documents.formats.archive import DocumentArchive
from winnow.documents.formats.docx_styles import NAMESPACE, ParagraphStyles
from winnow.documents.formats.tables import Cell, row_texts
from winnow.documents.formats.titles import best_title

_MAIN = "word/document.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_W = f"{{{NAMESPACE}}}"
_P, _TABLE, _ROW, _CELL = f"{_W}p", f"{_W}tbl", f"{_W}tr", f"{_W}tc"
_BOX = f"{_W}txbxContent"
_REMOVED = frozenset(
    f"{_W}{name}" for name in ("del", "moveFrom", "rPr", "pPr", "instrText", "delText", "fldData")
)
"""Elements whose content is not shown."""
_CHARACTERS = {
    f"{_W}tab": " ",
    f"{_W}br": "\n",
    f"{_W}cr": "\n",
    f"{_W}noBreakHyphen": "-",
    f"{_W}softHyphen": "",
}
_MAX_SPAN = 100
"""Limit of columns that a cell can span; greater values would cost memory."""
_MAX_DEPTH = 50
"""Limit of nested tables, boxes and containers."""


def convert(data: bytes) -> Document:
    """Converts a file; the title is that of its properties, else its first title or heading."""
    archive = DocumentArchive(data)
    walk = _WordWalk(ParagraphStyles(archive))
    for name in (_MAIN, *_NOTES):
        if name == _MAIN or name in archive:
            walk.blocks(office.part(archive, name))
    return walk.builder.build(best_title(office.title(archive), walk.first_heading))


class _WordWalk:
    """Turns the elements of a file into blocks."""

    def __init__(self, styles: ParagraphStyles) -> None:
        self.builder = DocumentBuilder()
        self.first_heading = ""
        self._styles = styles

    def blocks(self, element: Element, depth: int = 0) -> None:
        """Adds the paragraphs and tables in an element, which may be in containers."""
        if depth > _MAX_DEPTH:
            return
        for child in office.children(element):
            if child.tag == _P:
                self._paragraph(child, depth)
            elif child.tag == _TABLE:
                self._table(child, depth)
            elif child.tag not in _REMOVED:
                self.blocks(child, depth + 1)

    def _paragraph(self, element: Element, depth: int) -> None:
        text = _text(element)
        style = self._styles.of(element)
        if text.strip() and not style.is_contents:
            number = self._styles.next_number(style)
            if style.heading:
                self.first_heading = self.first_heading or text
                kind, level = BlockKind.HEADING, style.heading
            elif style.list_level:
                kind, level = BlockKind.LIST_ITEM, style.list_level
            else:
                kind, level = BlockKind.PARAGRAPH, 0
            self.builder.add(kind, f"{number} {text}", level=level)
        for box in _boxes(element):
            self.blocks(box, depth + 1)

    def _table(self, element: Element, depth: int) -> None:
        rows = [_cells(row) for row in _inside(element, _ROW)]
        if max(map(len, rows), default=0) < 2:  # noqa: PLR2004 - a frame around text
            for row in _inside(element, _ROW):
                self.blocks(row, depth + 1)
            return
        texts: list[list[Cell]] = []
        for cells in rows:
            above = texts[-1] if texts else []
            texts.append([_cell_text(cell, above[i : i + 1]) for i, cell in enumerate(cells)])
        headers = self._styles.header_rows(element, list(_inside(element, _ROW)))
        for text in row_texts(texts, headers):
            self.builder.add(BlockKind.TABLE_ROW, text)


def _inside(element: Element, tag: str) -> Iterator[Element]:
    """Yields elements of a tag, also inside containers such as content controls."""
    for child in office.children(element):
        if child.tag == tag:
            yield child
        elif child.tag not in _REMOVED and child.tag not in (_P, _TABLE):
            yield from _inside(child, tag)


def _cells(row: Element) -> list[Element | None]:
    """Returns the cell of each column; None for a column that the cell to the left spans, too."""
    cells: list[Element | None] = []
    for cell in _inside(row, _CELL):
        span = cell.find(f"{_W}tcPr/{_W}gridSpan")
        value = span.get(f"{_W}val", "1") if span is not None else "1"
        cells.append(cell)
        cells += [None] * (min(int(value), _MAX_SPAN) - 1 if value.isdecimal() else 0)
    return cells


def _cell_text(cell: Element | None, above: list[Cell]) -> Cell:
    """Returns the text of a cell, which is that of the cell above if both are merged."""
    if cell is None:
        return None
    merged = cell.find(f"{_W}tcPr/{_W}vMerge")
    if merged is not None and merged.get(f"{_W}val", "continue") == "continue" and above:
        return above[0]
    return " ".join(" ".join(_text(each).split()) for each in cell.iter(_P)).strip()


def _text(paragraph: Element) -> str:
    """Returns the shown text of a paragraph, without that of text boxes."""
    parts: list[str] = []
    pending = [paragraph]
    while pending:
        element = pending.pop()
        if element.tag == f"{_W}t":
            parts.append(element.text or "")
        elif element.tag in _CHARACTERS:
            parts.append(_CHARACTERS[element.tag])
        elif element.tag not in _REMOVED and element.tag != _BOX:
            pending.extend(reversed(list(office.children(element))))
    return "".join(parts)


def _boxes(paragraph: Element) -> Iterator[Element]:
    """Yields the text boxes of a paragraph, without those inside them."""
    pending = [paragraph]
    while pending:
        element = pending.pop()
        if element.tag == _BOX:
            yield element
        elif element.tag not in _REMOVED:
            pending.extend(reversed(list(office.children(element))))
