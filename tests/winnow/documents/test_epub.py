"""Tests of the conversion of EPUB books."""

import pytest
from document_files import epub, zipped
from shown_blocks import shown

from winnow.documents.failures import ConversionError, FailureReason
from winnow.documents.formats.epub import convert

PAGE = '<?xml version="1.0"?><html><head><title/><script src="x"/></head><body>{}</body></html>'


def test_chapters_are_in_reading_order() -> None:
    chapters = {
        "b.xhtml": PAGE.format("<h1>Two</h1><p>Text<a/></p>"),
        "a%20b.xhtml": PAGE.format("<h1>One</h1>"),
    }
    pages = {"a b.xhtml": chapters.pop("a%20b.xhtml"), **chapters}
    document = convert(epub(pages, title="A book", spine=["a%20b.xhtml", "b.xhtml", "gone.xhtml"]))
    assert document.title == "A book"
    assert shown(document) == ["# One", "# Two", "Text"]
    assert document.notes == ("1 chapters are missing in the file",)


def test_protected_chapters_need_a_password() -> None:
    book = epub({"a.xhtml": PAGE.format("x")})
    encryption = '<e xmlns:c="urn:c"><c:CipherReference URI="OPS/a.xhtml"/></e>'
    protected = _with(book, {"META-INF/encryption.xml": encryption})
    with pytest.raises(ConversionError) as caught:
        convert(protected)
    assert caught.value.reason is FailureReason.PASSWORD


def _with(data: bytes, members: dict[str, str]) -> bytes:
    import io
    import zipfile

    archive = zipfile.ZipFile(io.BytesIO(data))
    return zipped({**{name: archive.read(name) for name in archive.namelist()}, **members})
