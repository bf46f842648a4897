"""Converts EPUB books (EPUB 2 and 3), whose chapters are XHTML."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from winnow.documents.document import Document, DocumentBuilder
from winnow.documents.failures import ConversionError, FailureReason
from winnow.documents.formats import html
from winnow.documents.formats.archive import DocumentArchive
from winnow.documents.formats.decoding import decode

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_CHAPTERS = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_DC = "{http://purl.org/dc/elements/1.1/}"


def convert(data: bytes) -> Document:
    """Converts a book; the title is that of its metadata."""
    archive = DocumentArchive(data)
    package_name = _package_name(archive)
    package = archive.xml(package_name)
    encrypted = _encrypted(archive)
    builder = DocumentBuilder()
    first_heading = ""
    missing = 0
    for chapter in _chapters(package, package_name):
        if chapter in encrypted:
            raise ConversionError(FailureReason.PASSWORD, f"the chapter {chapter!r} is encrypted")
        if chapter not in archive:
            missing += 1
            continue
        heading = html.add_blocks(
            builder, html.from_xhtml(decode(archive.read(chapter), declares=True))
        )
        first_heading = first_heading or heading
    title = next((each.text for each in package.iter(f"{_DC}title") if each.text), first_heading)
    notes = (f"{missing} chapters are missing in the file",) if missing else ()
    return builder.build(title, notes=notes)


def _package_name(archive: DocumentArchive) -> str:
    """Returns the name of the package document, which lists the chapters."""
    for element in archive.xml(_CONTAINER).iter():
        if element.tag.endswith("}rootfile") and (name := element.get("full-path")):
            return name
    raise ConversionError(FailureReason.DAMAGED, f"{_CONTAINER} names no package document")


def _chapters(package: Element, name: str) -> Iterator[str]:
    """Yields the names of the chapters in reading order, without the table of contents."""
    folder = PurePosixPath(name).parent
    items = {each.get("id"): each for each in package.iter() if each.tag.endswith("}item")}
    for reference in package.iter():
        if not reference.tag.endswith("}itemref"):
            continue
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _CHAPTERS:
            continue
        if "nav" not in item.get("properties", "").split():
            yield normpath(folder / unquote(item.get("href", ""))).lstrip("/")


def _encrypted(archive: DocumentArchive) -> frozenset[str]:
    """Returns the names of encrypted members."""
    if _ENCRYPTION not in archive:
        return frozenset()
    elements = archive.xml(_ENCRYPTION).iter()
    return frozenset(
        unquote(each.get("URI", "")) for each in elements if each.tag.endswith("}CipherReference")
    )
