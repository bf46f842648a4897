"""Makes passages of documents. Pure.

A converted document has a structure, and its passages have the metadata that cites it. A raw
document is a title, a text and metadata, which each of its passages has, too. The passages of the
document `doc` have the ids `doc#0`, `doc#1` and so on.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import quote

from winnow.documents.cutting import cut
from winnow.documents.document import Block, BlockKind, Document
from winnow.domain.write import FedPassage
from winnow.text.lines import blocks_of, units_of

ID_SEPARATOR = "#"
"""Separates the id of a document from the number of a passage."""
MAX_DOCUMENT_NAME = 240
"""Limit of characters of a document's name, so that the ids of its passages are valid."""
UPLOADED = "upload-"
"""Begins the digests of uploaded documents, which no sync of a folder removes. Digests of other
documents are hexadecimal, so all of them are less.
"""
HEADING_SEPARATOR = " \u203a "
"""Separates headings: a single angle quotation mark, which headings rarely have."""
_VERSION = 1
"""Version of conversion and cutting; a higher one makes `sync` replace all documents."""
_MAX_TITLE = 120
"""Limit of characters of a title. The encoder reads 32 tokens of it."""
_MAX_HEADING = 200
"""Limit of characters of a heading in metadata."""


def document_digest(content: str, base_url: str) -> str:
    """Returns what identifies the passages of a document, in hexadecimal.

    `content`: SHA-256 of the document's file. Equal digests mean equal passages.
    """
    identity = f"{_VERSION} {content} {base_url}"
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def document_passages(
    name: str, document: Document, digest: str, base_url: str = ""
) -> Iterator[FedPassage]:
    """Yields the passages of a document; none if it has no words.

    The ids are `NAME#0`, `NAME#1` and so on. The metadata has the fields of a citation (see
    docs/documents.md).

    Args:
        name: path of the document in its folder.
        document: the converted document.
        digest: `document_digest` of the document.
        base_url: URL of the folder, with a final slash; empty if it has none.

    """
    passages = tuple(cut(document)) if document.passages is None else document.passages
    title = document.title or PurePosixPath(name).stem
    for number, each in enumerate(passages):
        metadata: dict[str, object] = {
            "document": name,
            "start": each.start,
            "end": each.end,
            "document_hash": digest,
            "document_passages": len(passages),
        }
        if each.headings:
            headings = (heading[:_MAX_HEADING] for heading in each.headings)
            metadata["heading"] = HEADING_SEPARATOR.join(headings)
        if each.page is not None:
            metadata["page"] = each.page
        if base_url:
            metadata["url"] = _url(base_url, name, each.page)
        yield FedPassage(
            id=f"{name}{ID_SEPARATOR}{number}",
            title=_title(title, each.headings),
            text=document.text[each.start : each.end],
            metadata=metadata,
        )


def raw_document_passages(document: FedPassage) -> Iterator[FedPassage]:
    """Yields the passages of a raw document, which is given as one long passage.

    Their texts are parts of its text, and contain all of its words. Yields none without words.
    """
    text = document.text
    for number, each in enumerate(cut(Document(document.title, text, tuple(_blocks(text))))):
        passage_id = f"{document.id}{ID_SEPARATOR}{number}"
        yield replace(document, id=passage_id, text=text[each.start : each.end])


def _blocks(text: str) -> Iterator[Block]:
    """Yields the paragraphs, list items and table rows of a raw text."""
    for block in blocks_of(text):
        units = units_of(text, block)
        kind = BlockKind.LIST_ITEM if len(units) > 1 else BlockKind.PARAGRAPH
        for unit in units:
            yield Block(kind=kind, start=unit.start, end=unit.end)


def _title(document: str, headings: Sequence[str]) -> str:
    """Returns the document's title and the headings, without repetitions.

    A long title loses its middle: the document and the last headings say most.
    """
    names = list(dict.fromkeys((document[:_MAX_TITLE], *headings)))
    while len(names) > 2 and len(HEADING_SEPARATOR.join(names)) > _MAX_TITLE:  # noqa: PLR2004
        del names[1]
    return HEADING_SEPARATOR.join(names)[: 2 * _MAX_TITLE]


def _url(base_url: str, name: str, page: int | None) -> str:
    """Returns the URL of a document; of its page if it is a PDF, which browsers open there."""
    url = base_url + quote(name)
    return f"{url}#page={page}" if page is not None and name.lower().endswith(".pdf") else url
