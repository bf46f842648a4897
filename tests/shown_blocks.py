"""Documents as lines, for comparisons in tests."""

from winnow.documents.document import Block, BlockKind, Document

_MARKS = {
    BlockKind.HEADING: "#",
    BlockKind.PARAGRAPH: "",
    BlockKind.LIST_ITEM: "-",
    BlockKind.TABLE_ROW: "|",
    BlockKind.CODE: "$",
}


def shown(document: Document) -> list[str]:
    """Returns a line for each block: its kind as a mark, repeated by level, and its text."""
    return [_line(document, block) for block in document.blocks]


def pages(document: Document) -> list[int | None]:
    return [block.page for block in document.blocks]


def _line(document: Document, block: Block) -> str:
    mark = _MARKS[block.kind] * max(1, block.level)
    return f"{mark} {document.text[block.start : block.end]}".strip()
