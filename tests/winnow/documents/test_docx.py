"""Tests of the conversion of Word files."""

from document_files import docx, paragraph
from shown_blocks import shown

from winnow.documents.formats.docx import convert


def row(*cells: str, header: bool = False) -> str:
    flag = "<w:trPr><w:tblHeader/></w:trPr>" if header else ""
    return f"<w:tr>{flag}{''.join(f'<w:tc>{cell}</w:tc>' for cell in cells)}</w:tr>"


def numbered(text: str, list_id: int, level: int = 0) -> str:
    properties = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>'
    return paragraph(text, properties=properties)


def test_styles_tell_headings_also_under_other_names() -> None:
    body = (
        paragraph("The title", "Titel")
        + paragraph("Contents 1", "Verz1")
        + paragraph("First", "berschrift1")
        + paragraph("Second", "Mine")
        + paragraph("Text & more")
    )
    document = convert(docx(body, title="Document1"))
    assert document.title == "The title"
    assert shown(document) == ["# The title", "# First", "## Second", "Text & more"]
    assert convert(docx(body, title="The policy")).title == "The policy"


def test_list_items_have_the_numbers_that_word_shows() -> None:
    body = (
        numbered("one", 1)
        + numbered("inner", 1, 1)
        + numbered("inner", 1, 1)
        + numbered("two", 1)
        + numbered("inner", 1, 1)
        + numbered("bullet", 2)
        + numbered("five", 3)
        + paragraph("by style", "Aufz")
        + numbered("none", 0)
    )
    assert shown(convert(docx(body))) == [
        "- 1. one",
        "-- 1.a) inner",
        "-- 1.b) inner",
        "- 2. two",
        "-- 2.a) inner",
        "- bullet",
        "- 5. five",
        "-- by style",
        "none",
    ]


def test_cells_of_tables_are_named_and_merged_ones_repeat() -> None:
    merged = '<w:tcPr><w:vMerge w:val="{}"/></w:tcPr>'
    wide = '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>'
    body = (
        "<w:tbl>"
        + row(paragraph("Suite"), paragraph("Version"), header=True)
        + row(merged.format("restart") + paragraph("stable"), paragraph("12"))
        + row(merged.format("continue") + paragraph(""), paragraph("12.1") + paragraph("later"))
        + row(wide + paragraph("both"))
        + "</w:tbl><w:tbl>"
        + row(paragraph("frame"))
        + "</w:tbl>"
    )
    assert shown(convert(docx(body))) == [
        "| Suite: stable; Version: 12",
        "| Suite: stable; Version: 12.1 later",
        "| Suite: both",
        "frame",
    ]


def test_changes_controls_boxes_and_notes() -> None:
    body = (
        "<w:sdt><w:sdtContent>"
        + paragraph("in a control")
        + "</w:sdtContent></w:sdt><w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>old</w:delText><w:t>old</w:t></w:r></w:del>"
        "<w:r><w:t> a</w:t><w:tab/><w:t>b</w:t><w:br/><w:noBreakHyphen/></w:r>"
        "<w:r><w:pict><w:txbxContent>" + paragraph("in a box") + "</w:txbxContent></w:pict></w:r>"
        "</w:p>"
    )
    document = convert(docx(body, footnotes=f"<w:footnote>{paragraph('a note')}</w:footnote>"))
    assert shown(document) == ["in a control", "new a b -", "in a box", "a note"]


def test_a_style_that_is_based_on_itself_and_odd_numbers_do_no_harm() -> None:
    properties = (
        '<w:outlineLvl w:val="x"/><w:numPr><w:ilvl w:val="-1"/><w:numId w:val="1"/></w:numPr>'
    )
    assert shown(convert(docx(paragraph("text", "Nowhere", properties)))) == ["- 1. text"]
