"""Pages of the documents of a view: the values of the metadata field `document`.

Documents and their passages are read from the indexes of fields that filters use. The checksum of a
document is read from its first passage, and compared with the index. So the time depends little on
the number of its passages.

If only few rows of a segment may be listed, such as those of a small tenant, nearly all documents
of the index would be read in vain. Then the metadata of these rows are read instead.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter

import numpy as np

from winnow.content_node.shard.row_filter import ValueRows, check_stop
from winnow.content_node.shard.rows import RowMask
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
from winnow.filtering import Value, fields_of
from winnow.inference.stop_signal import StopSignal

_METADATA = SelectedFields(title=False, text=False)
_VALUES_AT_ONCE = 256
"""Number of values that are read from an index of fields at a time."""
_ROWS_AT_ONCE = 100
"""Number of rows whose metadata are loaded at a time."""
_ROW_COST = 3
"""Time to read the metadata of a row, relative to that of a value in an index of fields."""
_MAX_COUNT = 2**53
"""Largest number of passages of a document that is believed."""
_DocumentRows = tuple[bytes, str, Segment, ValueRows]
"""Name of a document in UTF-8 and as text, and its distinct rows in a segment."""
_KnownRows = dict[tuple[int, str, Value], ValueRows]
"""Rows by segment, field and value, for a page: many documents have equal numbers of passages."""


def list_documents(view: ShardView, request: DocumentListing, stop: StopSignal) -> DocumentPage:
    """Returns the next page of documents, with their number of passages.

    Raises:
        InvalidRequestError: the filter is invalid.
        StoppedError: `stop` was set.
        ArtefactError: a file was changed.

    """
    parts = merge(
        *(_documents_of(placed, request, stop) for placed in view.segments), key=itemgetter(0)
    )
    documents: list[StoredDocument] = []
    complete, known = True, _KnownRows()
    for _, own in groupby(parts, key=itemgetter(0)):
        if len(documents) == request.limit:
            complete = False
            break
        check_stop(stop)
        documents.append(_describe_document(list(own), known, stop))
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
    elif _are_few(int(np.count_nonzero(allowed)), request.limit, segment.rows):
        yield from _documents_of_rows(segment, allowed, name, stop)
        return
    while values := segment.row_filter.strings_above(DOCUMENT, name, _VALUES_AT_ONCE, stop):
        check_stop(stop)  # a filter may exclude the passages of many documents
        for value, rows in values:
            name = str(value)
            own = np.unique(rows if allowed is None else rows[allowed[rows]])
            if len(own):
                yield name.encode(), name, segment, own


def _are_few(count: int, limit: int, rows: int) -> bool:
    """Whether it is faster to read `count` allowed rows of a segment than its index of documents.

    If the allowed rows are spread evenly, the index has `rows / count` documents for each document
    of the page.
    """
    return _ROW_COST * count * count < limit * rows


def _documents_of_rows(
    segment: Segment, allowed: RowMask, after: str, stop: StopSignal
) -> Iterator[_DocumentRows]:
    """Yields the documents of the allowed rows, as `_documents_of` does."""
    occupied = segment.occupied_rows
    rows = np.flatnonzero(allowed if occupied is None else allowed & occupied).tolist()
    rows_by_name = defaultdict[bytes, list[int]](list)
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        check_stop(stop)
        part = rows[begin : begin + _ROWS_AT_ONCE]
        for row, passage in zip(part, segment.load_fields(part, _METADATA), strict=True):
            values = fields_of(json.loads(passage.metadata or "{}")).get(DOCUMENT, ())
            for name in {each.encode() for each in values if isinstance(each, str)}:
                rows_by_name[name].append(row)
    for name in sorted(each for each in rows_by_name if each > after.encode()):
        yield name, name.decode(), segment, np.array(rows_by_name[name], np.uint32)


def _describe_document(
    parts: Sequence[_DocumentRows], known: _KnownRows, stop: StopSignal
) -> StoredDocument:
    """Returns the entry of one document. Its passages may be in several segments."""
    _, name, segment, rows = parts[0]
    (first,) = segment.load_fields([int(rows[0])], _METADATA)
    metadata = json.loads(first.metadata)
    checksum = _text(metadata.get(DOCUMENT_HASH))
    expected = _whole_number(metadata.get(DOCUMENT_PASSAGES))
    same_number = expected is not None and _all_have(
        parts, DOCUMENT_PASSAGES, float(expected), known, stop
    )
    return StoredDocument(
        name=name,
        passages=sum(len(own) for _, _, _, own in parts),
        hash=checksum if _all_have(parts, DOCUMENT_HASH, checksum, {}, stop) else "",
        expected=expected if same_number else None,
    )


def _all_have(
    parts: Sequence[_DocumentRows], field: str, value: Value, known: _KnownRows, stop: StopSignal
) -> bool:
    """Whether a field of all passages of a document has a value. Adds what it reads to `known`."""
    for _, _, segment, own in parts:
        key = id(segment), field, value
        if key not in known:
            known[key] = segment.row_filter.rows_with(field, value, stop)
        if not np.isin(own, known[key]).all():
            return False
    return True


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole_number(value: object) -> int | None:
    """Returns a value of metadata as a number of passages; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # 2.0 is a whole number, too: protobuf has one kind of number
    return int(value) if 0 <= value <= _MAX_COUNT and value == int(value) else None
