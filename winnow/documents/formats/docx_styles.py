"""What the styles and the numbering of a Word file say of its paragraphs and tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from winnow.documents.formats import office
from winnow.documents.formats.archive import DocumentArchive
from winnow.documents.formats.docx_numbering import ListNumbering

NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_W = f"{{{NAMESPACE}}}"
_VALUE = f"{_W}val"
_STYLES = "word/styles.xml"
_HEADING = re.compile(r"heading ([1-9])|(title)", re.IGNORECASE)
_LIST = re.compile(r"list (?:bullet|number)(?: ([2-5]))?", re.IGNORECASE)
_CONTENTS = re.compile(r"toc (?:\d|heading)|table of figures|index \d", re.IGNORECASE)
_OUTLINE_LEVELS = 9
"""Number of levels of headings; an outline level of 9 stands for other text."""
_MAX_BASES = 20
"""Limit of styles that a style is based on, since they may form a circle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphStyle:
    """What a paragraph is, by its style and its own properties."""

    heading: int = 0
    """Level of a heading, from 1; 0 for other text."""
    list_level: int = 0
    """Nesting depth of a list item, from 1; 0 for other text."""
    list_id: str = ""
    """Id of the list that numbers the paragraph; empty if none does."""
    is_contents: bool = False
    """Whether the paragraph is an entry of a table of contents or of an index."""


class ParagraphStyles:
    """The styles of a file."""

    def __init__(self, archive: DocumentArchive) -> None:
        root = office.part(archive, _STYLES) if _STYLES in archive else Element("none")
        styles = list(root.iter(f"{_W}style"))
        self._styles: Mapping[str, Element] = {
            each.get(f"{_W}styleId", ""): each for each in styles
        }
        self._default = next(
            (
                each.get(f"{_W}styleId", "")
                for each in styles
                if each.get(f"{_W}type") == "paragraph" and is_on(each.get(f"{_W}default"))
            ),
            "",
        )
        self._numbering = ListNumbering(archive)

    def of(self, paragraph: Element) -> ParagraphStyle:
        """Returns the style of a paragraph."""
        properties = paragraph.find(f"{_W}pPr")
        chosen = _value(properties, "pStyle") or self._default
        chain = list(self._chain(chosen))
        sources = [each for each in (properties, *(s.find(f"{_W}pPr") for s in chain)) if each]
        names = [_value(each, "name") for each in chain]
        list_id, level = self._list_and_level(sources)
        list_level = level + 1 if list_id else 0
        if not list_id and (named := next(filter(None, map(_LIST.fullmatch, names)), None)):
            list_level = int(named[1] or 1)
        return ParagraphStyle(
            heading=_heading(names, sources),
            list_level=list_level,
            list_id=list_id,
            is_contents=bool(names and _CONTENTS.fullmatch(names[0])),
        )

    def next_number(self, style: ParagraphStyle) -> str:
        """Returns the number that the next paragraph of a style shows; empty without one."""
        if not style.list_id:
            return ""
        return self._numbering.next_number(style.list_id, style.list_level - 1)

    def header_rows(self, table: Element, rows: Sequence[Element]) -> int:
        """Returns the number of first rows that name the columns of a table."""
        repeated = 0
        while repeated < len(rows) and _flag(rows[repeated].find(f"{_W}trPr"), "tblHeader"):
            repeated += 1
        if repeated == len(rows):
            return 0
        styled = self._emphasises_first_row(table) or (_is_bold(rows[0]) and not _is_bold(rows[1]))
        return repeated or int(len(rows) > 1 and styled)

    def _emphasises_first_row(self, table: Element) -> bool:
        properties = table.find(f"{_W}tblPr")
        look = properties.find(f"{_W}tblLook") if properties is not None else None
        if look is None or not is_on(look.get(f"{_W}firstRow", "0")):
            return False
        return any(
            each.get(f"{_W}type") == "firstRow"
            for style in self._chain(_value(properties, "tblStyle"))
            for each in style.iter(f"{_W}tblStylePr")
        )

    def _chain(self, name: str) -> Iterator[Element]:
        """Yields a style and those that it is based on."""
        for _ in range(_MAX_BASES):
            style = self._styles.get(name)
            if style is None:
                return
            yield style
            name = _value(style, "basedOn")

    def _list_and_level(self, sources: Sequence[Element]) -> tuple[str, int]:
        """Returns the id of the list and the level from 0; an empty id without a list."""
        for source in sources:
            numbering = source.find(f"{_W}numPr")
            if numbering is not None and (list_id := _value(numbering, "numId")):
                level = _value(numbering, "ilvl")
                known = self._numbering.has(list_id)
                return list_id if known else "", int(level) if level.isdecimal() else 0
        return "", 0


def is_on(value: str | None) -> bool:
    """Returns whether the value of an attribute means yes."""
    return value in ("1", "true", "on")


def _heading(names: Sequence[str], sources: Sequence[Element]) -> int:
    for source in sources:
        level = _value(source, "outlineLvl")
        if level.isdecimal():
            return int(level) + 1 if int(level) < _OUTLINE_LEVELS else 0
    match = next(filter(None, map(_HEADING.fullmatch, names)), None)
    return int(match[1] or 1) if match else 0


def _value(parent: Element | None, name: str) -> str:
    """Returns the value of a child; empty without one."""
    child = parent.find(f"{_W}{name}") if parent is not None else None
    return child.get(_VALUE, "") if child is not None else ""


def _flag(parent: Element | None, name: str) -> bool:
    """Returns whether a child is there and does not say no."""
    child = parent.find(f"{_W}{name}") if parent is not None else None
    return child is not None and is_on(child.get(_VALUE, "1"))


def _is_bold(row: Element) -> bool:
    """Returns whether all text of a row is bold."""
    runs = [run for run in row.iter(f"{_W}r") if "".join(run.itertext()).strip()]
    return bool(runs) and all(_flag(run.find(f"{_W}rPr"), "b") for run in runs)
