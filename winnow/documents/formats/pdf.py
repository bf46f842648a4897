"""Converts PDF files with PDFium: text by page, with headings by outline and by font."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from winnow.documents.document import Document, DocumentBuilder
from winnow.documents.failures import ConversionError, FailureReason
from winnow.documents.formats.pdf_blocks import add_blocks
from winnow.documents.formats.pdf_headings import OutlineEntry
from winnow.documents.formats.pdf_lines import PdfLine, lines_of_page
from winnow.documents.formats.pdf_pages import largest_text
from winnow.documents.formats.titles import best_title

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_MAX_OUTLINE_DEPTH = 6
_MAX_OUTLINE = 20_000
"""Limit of entries of an outline, which may form a circle."""


def convert(data: bytes) -> Document:
    """Converts a file; the title is that of its metadata, else its largest text."""
    import pypdfium2  # noqa: PLC0415 - of the extra `documents`

    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise ConversionError(FailureReason.PASSWORD, "the PDF file is encrypted") from error
        raise ConversionError(FailureReason.DAMAGED, f"the PDF file is damaged: {error}") from error
    with closing(pdf):
        pages, damaged = _pages(pdf)
        outline = list(_outline(pdf))
        title = pdf.get_metadata_value("Title")
    if not any(pages):
        _refuse(len(pages), damaged)
    builder = DocumentBuilder()
    add_blocks(builder, pages, outline)
    return builder.build(best_title(title, largest_text(pages)), notes=_notes(pages, damaged))


def _pages(pdf: "PdfDocument") -> tuple[Sequence[Sequence[PdfLine]], int]:
    """Returns the lines of each page, and the number of pages that cannot be read."""
    import pypdfium2  # noqa: PLC0415

    pages: list[Sequence[PdfLine]] = []
    damaged = 0
    for number in range(len(pdf)):
        try:
            with closing(pdf[number]) as page, closing(page.get_textpage()) as text:
                pages.append(lines_of_page(text))
        except pypdfium2.PdfiumError:
            pages.append(())
            damaged += 1
    return pages, damaged


def _outline(pdf: "PdfDocument") -> Iterator[OutlineEntry]:
    for count, entry in enumerate(pdf.get_toc(max_depth=_MAX_OUTLINE_DEPTH)):
        if count >= _MAX_OUTLINE:
            return
        destination = entry.get_dest()
        page = destination.get_index() if destination else None
        if page is not None:
            yield OutlineEntry(title=entry.get_title(), level=entry.level + 1, page=page + 1)


def _refuse(count: int, damaged: int) -> None:
    if count in (0, damaged):
        raise ConversionError(FailureReason.DAMAGED, "no page of the PDF file can be read")
    pages = "its page has" if count == 1 else f"none of its {count} pages has"
    negation = "no text" if count == 1 else "text"
    raise ConversionError(FailureReason.NO_TEXT, f"{pages} {negation}, as in a scan")


def _notes(pages: Sequence[Sequence[PdfLine]], damaged: int) -> tuple[str, ...]:
    notes = []
    empty = sum(not page for page in pages) - damaged
    if empty:
        notes.append(f"{empty} of {len(pages)} pages have no text")
    if damaged:
        notes.append(f"{damaged} of {len(pages)} pages cannot be read")
    return tuple(notes)
