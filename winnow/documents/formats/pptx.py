"""Converts PowerPoint files (PresentationML of ECMA-376); a page is a slide."""

from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from winnow.documents.document import BlockKind, Document, DocumentBuilder
from winnow.documents.formats import office
from winnow.documents.formats.archive import DocumentArchive
from winnow.documents.formats.tables import Cell, row_texts
from winnow.documents.formats.titles import best_title

_MAIN = "ppt/presentation.xml"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SHAPE, _FRAME, _GROUP = f"{_P}sp", f"{_P}graphicFrame", f"{_P}grpSp"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_DIAGRAM_DATA = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}dm"
_TITLES = ("title", "ctrTitle")
_AROUND = ("dt", "ftr", "hdr", "sldNum", "sldImg")
"""Kinds of placeholders for dates, footers and numbers."""
_BODIES = ("body", "obj", "")
"""Kinds of placeholders whose paragraphs are list items unless they say otherwise."""
_MAX_DEPTH = 50
"""Limit of nested groups of shapes."""


def convert(data: bytes) -> Document:
    """Converts a file; the title is that of its properties, else that of its first slide."""
    archive = DocumentArchive(data)
    builder = DocumentBuilder()
    relations = office.related(archive, _MAIN)
    titles: list[str] = []
    slides = [
        relations[each.get(office.ID, "")][1]
        for each in office.part(archive, _MAIN).iter(f"{_P}sldId")
        if each.get(office.ID, "") in relations
    ]
    for number, name in enumerate(slides, 1):
        if name in archive:
            titles += _add_slide(builder, archive, name, number)
    return builder.build(best_title(office.title(archive), *titles))


def _add_slide(
    builder: DocumentBuilder, archive: DocumentArchive, name: str, number: int
) -> Sequence[str]:
    """Adds the text of a slide and of its notes; returns its titles."""
    shapes = list(_shapes(office.part(archive, name)))
    titles = [each for each in shapes if _placeholder(each) in _TITLES]
    relations = office.related(archive, name)
    for shape in titles:
        text = " ".join(_text(each) for each in shape.iter(f"{_A}p"))
        builder.add(BlockKind.HEADING, text, level=1, page=number)
    for shape in shapes:
        if shape in titles:
            continue
        if shape.tag == _FRAME:
            for kind, text in _frame(shape, archive, relations):
                builder.add(kind, text, level=int(kind is BlockKind.LIST_ITEM), page=number)
        else:
            _add_paragraphs(builder, shape, number)
    for relation, notes in relations.values():
        if relation == "notesSlide" and notes in archive:
            for shape in _shapes(office.part(archive, notes)):
                _add_paragraphs(builder, shape, number, notes=True)
    return [" ".join(_text(each) for each in shape.iter(f"{_A}p")) for shape in titles]


def _shapes(root: Element) -> Iterator[Element]:
    """Yields shapes and frames in the order of a slide, also inside groups."""
    tree = root.find(f"{_P}cSld/{_P}spTree")
    pending = [(tree, 0)] if tree is not None else []
    while pending:
        element, depth = pending.pop()
        if element.tag in (_SHAPE, _FRAME):
            if _placeholder(element) not in _AROUND:
                yield element
        elif depth < _MAX_DEPTH:
            inner = [(each, depth + 1) for each in office.children(element)]
            pending.extend(reversed(inner))


def _placeholder(shape: Element) -> str | None:
    """Returns the kind of a placeholder (empty if general); None if the shape is none."""
    found = shape.find(f"*/{_P}nvPr/{_P}ph")
    return None if found is None else found.get("type", "")


def _add_paragraphs(
    builder: DocumentBuilder, shape: Element, number: int, *, notes: bool = False
) -> None:
    is_list = not notes and _placeholder(shape) in _BODIES
    for paragraph in shape.iter(f"{_A}p"):
        properties = paragraph.find(f"{_A}pPr")
        level = _level(properties, is_list=is_list)
        kind = BlockKind.LIST_ITEM if level else BlockKind.PARAGRAPH
        builder.add(kind, _text(paragraph), level=level, page=number)


def _level(properties: Element | None, *, is_list: bool) -> int:
    """Returns the nesting depth of a list item, from 1; 0 for other text."""
    depth = properties.get("lvl", "0") if properties is not None else "0"
    if properties is not None:
        if properties.find(f"{_A}buNone") is not None:
            return 0
        marks = (f"{_A}buChar", f"{_A}buAutoNum", f"{_A}buBlip")
        is_list = is_list or any(properties.find(mark) is not None for mark in marks)
    return int(is_list) and (int(depth) + 1 if depth.isdecimal() else 1)


def _frame(
    frame: Element, archive: DocumentArchive, relations: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[BlockKind, str]]:
    """Yields the rows of tables and the points of diagrams."""
    for table in frame.iter(f"{_A}tbl"):
        rows = [_cells(row) for row in table.findall(f"{_A}tr")]
        properties = table.find(f"{_A}tblPr")
        named = properties is not None and properties.get("firstRow") in ("1", "true")
        for text in row_texts(rows, int(named and len(rows) > 1)):
            yield BlockKind.TABLE_ROW, text
    for diagram in frame.iter(_DIAGRAM):
        _, data = relations.get(diagram.get(_DIAGRAM_DATA, ""), ("", ""))
        if data in archive:
            for paragraph in office.part(archive, data).iter(f"{_A}p"):
                yield BlockKind.LIST_ITEM, _text(paragraph)


def _cells(row: Element) -> list[Cell]:
    """Returns the text of each column; None for a column that the cell to the left spans, too."""
    cells: list[Cell] = []
    for cell in row.findall(f"{_A}tc"):
        if cell.get("hMerge") in ("1", "true") and cells:
            cells.append(None)
        else:
            cells.append(" ".join(filter(None, map(_text, cell.iter(f"{_A}p")))))
    return cells


def _text(paragraph: Element) -> str:
    parts = []
    for element in paragraph.iter():
        if element.tag == f"{_A}t":
            parts.append(element.text or "")
        elif element.tag == f"{_A}br":
            parts.append("\n")
    return " ".join("".join(parts).split())
