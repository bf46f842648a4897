"""Tests of the conversion of PowerPoint files."""

from document_files import pptx, shape
from shown_blocks import pages, shown

from winnow.documents.formats.pptx import convert

TABLE = (
    "<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tblPr firstRow='1'/>"
    "<a:tr><a:tc><a:txBody><a:p><a:r><a:t>Suite</a:t></a:r></a:p></a:txBody></a:tc>"
    "<a:tc><a:txBody><a:p><a:r><a:t>Version</a:t></a:r></a:p></a:txBody></a:tc></a:tr>"
    "<a:tr><a:tc><a:txBody><a:p><a:r><a:t>stable</a:t></a:r></a:p></a:txBody></a:tc>"
    "<a:tc><a:txBody><a:p><a:r><a:t>12</a:t></a:r></a:p></a:txBody></a:tc></a:tr>"
    "</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
)


def test_slides_are_pages_with_their_title_first() -> None:
    slides = [
        shape("The subtitle", kind="subTitle") + shape("The title", kind="ctrTitle"),
        shape("Areas", kind="title")
        + shape("main", "contrib")
        + shape("inner", properties=' lvl="1"')
        + f"<p:grpSp>{shape('A text box', kind=None)}</p:grpSp>"
        + shape("17", kind="sldNum"),
        TABLE,
    ]
    notes = {1: shape("Say this.", kind="body") + shape("17", kind="sldNum")}
    document = convert(pptx(slides, notes))
    assert document.title == "The title"
    assert shown(document) == [
        "# The title",
        "The subtitle",
        "# Areas",
        "- main",
        "- contrib",
        "-- inner",
        "A text box",
        "Say this.",
        "| Suite: stable; Version: 12",
    ]
    assert pages(document) == [1, 1, 2, 2, 2, 2, 2, 2, 3]
