"""Pages of passages of a view, in the order of their ids; lookups by id; counts.

This module knows one immutable view. It does not know threads or deadlines.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.view import PlacedSegment, ShardView
from winnow.domain.listing import (
    MAX_PAGE_BYTES,
    CountRequest,
    FoundPassages,
    PassageCount,
    PassageListing,
    PassageLookup,
    PassagePage,
    SelectedFields,
    content_bytes,
)
from winnow.domain.passage import Passage
from winnow.inference.stop_signal import StopSignal

_ROWS_AT_ONCE = 100
"""Number of passages that are loaded at a time."""


def list_passages(view: ShardView, request: PassageListing, stop: StopSignal) -> PassagePage:
    """Returns the next page of passages.

    The page ends early once its passages have `MAX_PAGE_BYTES`; it has at least one passage if any
    is left.

    Raises:
        InvalidRequestError: the filter is invalid.
        StoppedError: `stop` was set.
        ArtefactError: a file was changed.

    """
    following = sorted(
        entry for placed in view.segments for entry in _next_ids(placed, request, stop)
    )
    rows = [row for _, row in following[: request.limit]]
    passages = _load_fitting(view, rows, request.fields, stop)
    return PassagePage(
        passages=tuple(passages),
        complete=len(passages) == len(following),
        sequence=view.sequence,
        log_id=view.log_id,
    )


def look_up(view: ShardView, request: PassageLookup, stop: StopSignal) -> FoundPassages:
    """Returns the passages of the ids, without ids that the shard lacks.

    Stops early once the passages have `MAX_PAGE_BYTES`. Raises the errors of `list_passages`.
    """
    found = [(number, _find_row(view, each)) for number, each in enumerate(request.ids)]
    rows = [(number, row) for number, row in found if row is not None]
    passages = _load_fitting(view, [row for _, row in rows], request.fields, stop)
    complete = len(passages) == len(rows)
    looked_up = len(request.ids) if complete else rows[len(passages)][0]
    return FoundPassages(
        passages=tuple(passages),
        looked_up=looked_up,
        sequence=view.sequence,
        log_id=view.log_id,
    )


def count_passages(view: ShardView, request: CountRequest, stop: StopSignal) -> PassageCount:
    """Counts the passages that match a filter, and the bytes if that is requested.

    Raises the errors of `list_passages`.
    """
    count, size = view.passages, None
    if request.where:
        masks = (placed.allowed_rows(request.where, stop) for placed in view.segments)
        count = sum(int(np.count_nonzero(mask)) for mask in masks if mask is not None)
    if request.with_bytes:
        size = sum(_content_bytes(placed, request.where, stop) for placed in view.segments)
    return PassageCount(
        passages=count, content_bytes=size, sequence=view.sequence, log_id=view.log_id
    )


def _content_bytes(placed: PlacedSegment, where: str, stop: StopSignal) -> int:
    """Adds up the bytes of the allowed passages."""
    rows = placed.segment.rows_after("")  # without empty rows
    allowed = placed.allowed_rows(where, stop)
    if allowed is not None:
        rows = rows[allowed[rows]]
    size = 0
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        check_stop(stop)
        part = rows[begin : begin + _ROWS_AT_ONCE].tolist()
        size += placed.segment.content_bytes(part)
    return size


def _load_fitting(
    view: ShardView, rows: Sequence[int], fields: SelectedFields, stop: StopSignal
) -> list[Passage]:
    """Returns the passages of distinct rows, until they have `MAX_PAGE_BYTES`."""
    passages: list[Passage] = []
    size = 0
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        check_stop(stop)
        part = rows[begin : begin + _ROWS_AT_ONCE]
        for passage in view.map_rows(part, lambda segment, own: segment.load_fields(own, fields)):
            passages.append(passage)
            size += content_bytes(passage)
            if size >= MAX_PAGE_BYTES:
                return passages
    return passages


def _next_ids(
    placed: PlacedSegment, request: PassageListing, stop: StopSignal
) -> Iterator[tuple[bytes, int]]:
    """Yields the ids of the next passages of a segment, each with its row in the view.

    There is one more than the page may have.
    """
    rows = placed.segment.rows_after(request.after_id)
    allowed = placed.allowed_rows(request.where, stop)
    if allowed is not None:
        rows = rows[allowed[rows]]
    following: list[int] = rows[: request.limit + 1].tolist()
    names = placed.segment.ids_and_sequences(following)
    for row, (identifier, _) in zip(following, names, strict=True):
        yield identifier.encode(), placed.first_row + row


def _find_row(view: ShardView, passage_id: str) -> int | None:
    """Returns the row of a passage in the view; None if the view lacks it."""
    for placed in reversed(view.segments):
        for row in reversed(placed.segment.rows_of(passage_id)):
            if placed.live_rows is None or placed.live_rows[row]:
                return placed.first_row + row
    return None
