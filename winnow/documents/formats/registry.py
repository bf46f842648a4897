"""Chooses the format of a file by its content and its name, and converts it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePath

from winnow.documents.document import Document
from winnow.documents.failures import ConversionError, FailureReason
from winnow.documents.formats.archive import DocumentArchive
from winnow.errors import WinnowError
from winnow.packaged import extra


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A format of files."""

    name: str
    """Name in reports, such as `PDF`."""
    module: str
    """Module of this package with the function `convert`."""
    suffixes: tuple[str, ...]
    """Extensions in small letters, with the dot."""
    is_text: bool = False
    """Whether any text can be a file of the format, so that only the name tells it."""


PDF = DocumentFormat("PDF", "pdf", (".pdf",))
WORD = DocumentFormat("Word", "docx", (".docx", ".docm", ".dotx"))
POWERPOINT = DocumentFormat("PowerPoint", "pptx", (".pptx", ".pptm", ".ppsx", ".potx"))
EPUB = DocumentFormat("EPUB", "epub", (".epub",))
HTML = DocumentFormat("HTML", "html", (".html", ".htm", ".xhtml", ".xht"))
MARKDOWN = DocumentFormat("Markdown", "markdown", (".md", ".markdown", ".mkd"), is_text=True)
RESTRUCTURED_TEXT = DocumentFormat(
    "reStructuredText", "restructured_text", (".rst", ".rest"), is_text=True
)
PLAIN_TEXT = DocumentFormat("plain text", "plain_text", (".txt", ".text"), is_text=True)
FORMATS = (PDF, WORD, POWERPOINT, EPUB, HTML, MARKDOWN, RESTRUCTURED_TEXT, PLAIN_TEXT)
PARSERS = ("charset_normalizer", "docutils", "markdown_it", "pypdfium2", "selectolax")
"""Modules that parse files."""
LIBRARIES = (*PARSERS, "pathspec", "watchfiles")
"""Modules of the extra `documents`."""
BY_SUFFIX: Mapping[str, DocumentFormat] = {
    suffix: each for each in FORMATS for suffix in each.suffixes
}
"""Formats by the extension of a file's name."""

_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)[\s>]",
    re.IGNORECASE | re.DOTALL,
)
_EXAMINED = 4096
"""Number of first bytes by which a format is recognised."""
_MARKS = ((b"\xef\xbb\xbf", 3), (b"\xff\xfe", 2), (b"\xfe\xff", 2))
_PDF_MARK = b"%PDF-"
_PDF_MARK_WITHIN = 1024
"""Number of first bytes in which readers look for the mark of a PDF."""
_ZIP_MARK = b"PK\x03\x04"
_MEMBERS = (
    ("word/document.xml", WORD),
    ("ppt/presentation.xml", POWERPOINT),
    ("META-INF/container.xml", EPUB),
)
"""Members of zip archives that only files of a format have."""
_UNSUPPORTED_MEMBERS = {"xl/workbook.xml": "an Excel file", "content.xml": "an OpenDocument file"}
_OLE_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Begin of Office files before 2007, and of encrypted ones."""
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")


def require_libraries() -> None:
    """Raises WinnowError if a library of the extra `documents` is missing."""
    missing = [each for each in LIBRARIES if find_spec(each) is None]
    if missing:
        raise WinnowError(f"documents need {', '.join(missing)}: {extra('documents')}")


def is_supported(path: PurePath) -> bool:
    """Returns whether the name of a file has the extension of a format."""
    return path.suffix.lower() in BY_SUFFIX


def convert(name: str, data: bytes) -> Document:
    """Converts the content of the file `name`; raises ConversionError if it cannot.

    Imports the format's library. `require_libraries` says whether it is there.
    """
    chosen = recognise(name, data)
    module = import_module(f"winnow.documents.formats.{chosen.module}")
    document: Document = module.convert(data)
    if not document.text:
        raise ConversionError(FailureReason.NO_TEXT, f"the {chosen.name} file has no text")
    return replace(document, format=chosen.name)


def recognise(name: str, data: bytes) -> DocumentFormat:
    """Returns the format of a file; raises ConversionError if it is none of `FORMATS`.

    Content of a certain format counts more than the name. Only the name tells Markdown from plain
    text.
    """
    if not data.strip():
        raise ConversionError(FailureReason.NO_TEXT, "the file is empty")
    named = _named_format(PurePath(name))
    certain = _certain_format(data)
    if certain is HTML and named.is_text and named is not PLAIN_TEXT:
        # Markdown and reStructuredText may contain HTML
        return named
    if certain is not None:
        return certain
    if named.is_text or named is HTML:
        return named
    raise ConversionError(
        FailureReason.UNKNOWN_FORMAT, f"the content is not that of a {named.name} file"
    )


def _named_format(path: PurePath) -> DocumentFormat:
    """Returns the format of a name: that of `guide.rst.txt` is reStructuredText."""
    suffix = path.suffix.lower()
    inner = BY_SUFFIX.get(PurePath(path.stem).suffix.lower())
    if suffix == ".txt" and inner is not None and inner.is_text:
        return inner
    return BY_SUFFIX.get(suffix, PLAIN_TEXT)


def _certain_format(data: bytes) -> DocumentFormat | None:
    """Returns the format that the content shows, if any."""
    if _PDF_MARK in data[:_PDF_MARK_WITHIN]:
        return PDF
    if data.startswith(_ZIP_MARK):
        return _zipped_format(data)
    if data.startswith(_OLE_MARK):
        if _ENCRYPTED_STREAM in data:
            raise ConversionError(FailureReason.PASSWORD, "the Office file is encrypted")
        raise ConversionError(
            FailureReason.UNKNOWN_FORMAT,
            "Office files before 2007 are not supported: save it as .docx or .pptx",
        )
    start = data[:_EXAMINED]
    for mark, length in _MARKS:
        if start.startswith(mark):
            start = start[length:].replace(b"\x00", b"")
    return HTML if _HTML_START.match(start) else None


def _zipped_format(data: bytes) -> DocumentFormat:
    archive = DocumentArchive(data)
    for member, zipped in _MEMBERS:
        if member in archive:
            return zipped
    other = (text for member, text in _UNSUPPORTED_MEMBERS.items() if member in archive)
    raise ConversionError(
        FailureReason.UNKNOWN_FORMAT, f"the content is {next(other, 'a zip archive')}"
    )
