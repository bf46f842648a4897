"""Tests of the builder of documents."""

from winnow.documents.document import BlockKind, DocumentBuilder


def test_blocks_are_ranges_of_the_text() -> None:
    builder = DocumentBuilder()
    builder.add(BlockKind.HEADING, " The\n title ", level=1, page=2)
    builder.add(BlockKind.LIST_ITEM, "one", level=1)
    builder.add(BlockKind.LIST_ITEM, " \x00\u00ad ", level=1)
    builder.add(BlockKind.LIST_ITEM, "two\ud800", level=1)
    builder.add(BlockKind.CODE, "\na\n  b\n")
    document = builder.build(" A\ttitle\x00", notes=("a note",))
    assert document.text == "The title\n\none\ntwo\n\na\n  b"
    assert [document.text[each.start : each.end] for each in document.blocks] == [
        "The title",
        "one",
        "two",
        "a\n  b",
    ]
    assert (document.title, document.notes, document.blocks[0].page) == ("A title", ("a note",), 2)
