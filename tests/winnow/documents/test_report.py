"""Tests of the report of a conversion."""

from dataclasses import replace

from winnow.documents.document import BlockKind, DocumentBuilder
from winnow.documents.failures import ConversionFailure, FailureReason
from winnow.documents.report import ConversionReport


def test_documents_are_counted_and_failures_named() -> None:
    builder = DocumentBuilder()
    builder.add(BlockKind.PARAGRAPH, "text")
    whole = replace(builder.build(""), format="HTML")
    partial = replace(whole, format="PDF", notes=("1 of 2 pages have no text",))
    report = ConversionReport()
    assert list(report.lines()) == ["0 documents"]
    report.add("a.html", whole)
    report.add("b.html", whole)
    report.add("c.pdf", partial)
    report.add("d\n.pdf", ConversionFailure(FailureReason.PASSWORD, "the PDF file is encrypted"))
    assert list(report.lines()) == [
        "3 documents: 2 HTML, 1 PDF",
        "1 file failed:",
        "  d?.pdf: needs a password: the PDF file is encrypted",
        "1 document incomplete:",
        "  c.pdf: 1 of 2 pages have no text",
    ]
    assert report.to_json() == {
        "documents": 3,
        "formats": {"HTML": 2, "PDF": 1},
        "failed": [
            {
                "path": "d\n.pdf",
                "reason": "needs a password",
                "detail": "the PDF file is encrypted",
            }
        ],
        "incomplete": [{"path": "c.pdf", "note": "1 of 2 pages have no text"}],
    }
