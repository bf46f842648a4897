"""Pages of the documents of a view: the values of the metadata field `document`.

The values are read from the indexes of fields that filters use. The checksum of a document is read
from the metadata of its passages.
"""

import json
from collections.abc import Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any

from winnow.content_node.shard.row_filter import ValueRows, check_stop
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.view import PlacedSegment, ShardView
from winnow.domain.listing import (
    DOCUMENT,
    DOCUMENT_HASH,
    DOCUMENT_PASSAGES,
    DocumentListing,
    DocumentPage,
    SelectedFields,
    StoredDocument,
)
from winnow.domain.passage import Passage
from winnow.inference.stop_signal import StopSignal

_METADATA = SelectedFields(title=False, text=False)
_MAX_ROWS = 20_000
"""Passages after which a page ends: their metadata takes about half a second to read."""
_VALUES_AT_ONCE = 256
"""Number of values that are read from an index of fields at a time."""
_ROWS_AT_ONCE = 1_000
"""Number of passages whose metadata is read between two checks of the stop signal."""
_DocumentRows = tuple[bytes, str, Segment, ValueRows]
"""Name of a document in UTF-8 and as text, and its rows in a segment."""


def list_documents(view: ShardView, request: DocumentListing, stop: StopSignal) -> DocumentPage:
    """Returns the next page of documents, with their number of passages.

    The page ends early if its documents have many passages; it has at least one document if any is
    left.

    Raises:
        InvalidRequestError: the filter is invalid.
        StoppedError: `stop` was set.
        ArtefactError: a file was changed.

    """
    parts = merge(
        *(_documents_of(placed, request, stop) for placed in view.segments), key=itemgetter(0)
    )
    documents: list[StoredDocument] = []
    rows, complete = 0, True
    for _, own in groupby(parts, key=itemgetter(0)):
        if len(documents) == request.limit or rows >= _MAX_ROWS:
            complete = False
            break
        documents.append(_summarise(list(own), stop))
        rows += documents[-1].passages
    return DocumentPage(
        documents=tuple(documents),
        complete=complete,
        sequence=view.sequence,
        log_id=view.log_id,
    )


def _documents_of(
    placed: PlacedSegment, request: DocumentListing, stop: StopSignal
) -> Iterator[_DocumentRows]:
    """Yields the next documents of a segment that have a matching passage, in their order."""
    segment, name = placed.segment, request.after_document
    allowed = placed.allowed_rows(request.where, stop)
    if allowed is None:
        allowed = segment.occupied_rows
    while values := segment.row_filter.strings_above(DOCUMENT, name, _VALUES_AT_ONCE, stop):
        check_stop(stop)  # a filter may exclude the passages of many documents
        for value, rows in values:
            name = str(value)
            own = rows if allowed is None else rows[allowed[rows]]
            if len(own):
                yield name.encode(), name, segment, own


def _summarise(parts: list[_DocumentRows], stop: StopSignal) -> StoredDocument:
    """Describes one document, whose passages may be in several segments."""
    hashes, expected, passages = set[str](), set[int | None](), 0
    for passage in _load_metadata(parts, stop):
        metadata: dict[str, Any] = json.loads(passage.metadata)
        passages += 1
        hashes.add(_text(metadata.get(DOCUMENT_HASH)))
        expected.add(_whole_number(metadata.get(DOCUMENT_PASSAGES)))
    return StoredDocument(
        name=parts[0][1],
        passages=passages,
        hash=hashes.pop() if len(hashes) == 1 else "",
        expected=expected.pop() if len(expected) == 1 else None,
    )


def _load_metadata(parts: list[_DocumentRows], stop: StopSignal) -> Iterator[Passage]:
    """Yields the passages of a document. All passages of an index may be of one document."""
    for _, _, segment, rows in parts:
        own = sorted(set(rows.tolist()))
        for begin in range(0, len(own), _ROWS_AT_ONCE):
            check_stop(stop)
            yield from segment.load_fields(own[begin : begin + _ROWS_AT_ONCE], _METADATA)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole_number(value: object) -> int | None:
    """Returns a value of metadata as a whole number; None if it is none."""
    if isinstance(value, float) and value.is_integer():  # 2.0: protobuf has one kind of number
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
