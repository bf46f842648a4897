"""Tests of the choice of a format."""

import io
import zipfile

import pytest

from winnow.documents.failures import ConversionError, FailureReason
from winnow.documents.formats import registry
from winnow.documents.formats.registry import recognise
from winnow.errors import WinnowError


def zipped(*names: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in names:
            archive.writestr(name, "content")
    return target.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.pdf", b"%PDF-1.7\n", registry.PDF),
        ("a.md", b"\n%PDF-1.7\n", registry.PDF),
        ("a.bin", zipped("word/document.xml"), registry.WORD),
        ("a.docx", zipped("ppt/presentation.xml"), registry.POWERPOINT),
        ("a.docx", zipped("mimetype", "META-INF/container.xml"), registry.EPUB),
        ("a.pdf", b"<!DOCTYPE html><p>", registry.HTML),
        ("a.txt", b"<?xml version='1.0'?>\n<!-- x -->\n<HTML>", registry.HTML),
        ("a.pdf", "<html>".encode("utf-16"), registry.HTML),
        ("a.md", b"<html>", registry.MARKDOWN),
        ("A.MD", b"text", registry.MARKDOWN),
        ("a.html", b"<p>text", registry.HTML),
        ("a.rst", b"text", registry.RESTRUCTURED_TEXT),
        ("README", b"text", registry.PLAIN_TEXT),
    ],
)
def test_content_counts_more_than_the_name(
    name: str, data: bytes, expected: registry.DocumentFormat
) -> None:
    assert recognise(name, data) is expected


@pytest.mark.parametrize(
    ("name", "data", "reason", "detail"),
    [
        ("a.txt", b" \n", FailureReason.NO_TEXT, "the file is empty"),
        ("a.pdf", b"text", FailureReason.UNKNOWN_FORMAT, "the content is not that of a PDF file"),
        ("a.docx", zipped("x"), FailureReason.UNKNOWN_FORMAT, "the content is a zip archive"),
        (
            "a.docx",
            zipped("xl/workbook.xml"),
            FailureReason.UNKNOWN_FORMAT,
            "the content is an Excel file",
        ),
        (
            "a.docx",
            registry._OLE_MARK + registry._ENCRYPTED_STREAM,
            FailureReason.PASSWORD,
            "the Office file is encrypted",
        ),
        (
            "a.doc",
            registry._OLE_MARK + b"x",
            FailureReason.UNKNOWN_FORMAT,
            "Office files before 2007 are not supported: save it as .docx or .pptx",
        ),
    ],
)
def test_other_content_is_named(name: str, data: bytes, reason: FailureReason, detail: str) -> None:
    with pytest.raises(ConversionError) as caught:
        recognise(name, data)
    assert (caught.value.reason, caught.value.detail) == (reason, detail)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LIBRARIES", ("json", "no_such_library"))
    with pytest.raises(WinnowError) as caught:
        registry.require_libraries()
    assert str(caught.value) == (
        "documents need no_such_library: pip install 'winnow-qa[documents]'"
    )
