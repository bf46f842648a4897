"""Pages of passages of a view, in the order of their ids; lookups by id; counts.

This module knows one immutable view. It does not know threads or deadlines.
"""

from collections.abc import Iterator

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
    content_bytes,
)
from winnow.domain.passage import Passage
from winnow.inference.stop_signal import StopSignal


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
        (identifier, number, row)
        for number, placed in enumerate(view.segments)
        for identifier, row in _next_ids(placed, request, stop)
    )
    passages: list[Passage] = []
    size = 0
    for _, number, row in following[: request.limit]:
        check_stop(stop)
        passages.append(view.segments[number].segment.load_fields(row, request.fields))
        size += content_bytes(passages[-1])
        if size >= MAX_PAGE_BYTES:
            break
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
    passages: list[Passage] = []
    size = looked_up = 0
    for identifier in request.ids:
        check_stop(stop)
        looked_up += 1
        if (found := _find(view, identifier)) is None:
            continue
        placed, row = found
        passages.append(placed.segment.load_fields(row, request.fields))
        size += content_bytes(passages[-1])
        if size >= MAX_PAGE_BYTES:
            break
    return FoundPassages(
        passages=tuple(passages),
        looked_up=looked_up,
        sequence=view.sequence,
        log_id=view.log_id,
    )


def count_passages(view: ShardView, request: CountRequest, stop: StopSignal) -> PassageCount:
    """Counts the passages that match a filter. Raises the errors of `list_passages`."""
    count = view.passages
    if request.where:
        masks = (placed.allowed_rows(request.where, stop) for placed in view.segments)
        count = sum(int(np.count_nonzero(mask)) for mask in masks if mask is not None)
    return PassageCount(passages=count, sequence=view.sequence, log_id=view.log_id)


def _next_ids(
    placed: PlacedSegment, request: PassageListing, stop: StopSignal
) -> Iterator[tuple[bytes, int]]:
    """Yields the id and row of the next passages of a segment, one more than the page may have."""
    rows = placed.segment.rows_after(request.after_id)
    allowed = placed.allowed_rows(request.where, stop)
    if allowed is not None:
        rows = rows[allowed[rows]]
    following: list[int] = rows[: request.limit + 1].tolist()
    for row, (identifier, _) in zip(
        following, placed.segment.ids_and_sequences(following), strict=True
    ):
        yield identifier.encode(), row


def _find(view: ShardView, passage_id: str) -> tuple[PlacedSegment, int] | None:
    """Returns the segment and the row of a passage; None if the view lacks it."""
    for placed in reversed(view.segments):
        for row in reversed(placed.segment.rows_of(passage_id)):
            if placed.live_rows is None or placed.live_rows[row]:
                return placed, row
    return None
