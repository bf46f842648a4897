"""Builds the view of a shard: its base, segments in memory for later puts, and deleted rows.

Used by one thread. A served view never changes: masks are copied before a change.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.shard.joining import tail_to_join
from winnow.content_node.shard.memory_passages import MemoryPassages
from winnow.content_node.shard.memory_segment import MemorySegment
from winnow.content_node.shard.rows import RowMask
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.content_node.shard.view import PlacedSegment, ShardView, live_generation, view_of


class ViewBuilder:
    """Builds views of a base and of the writes applied to it."""

    def __init__(self, base: StoredSegment) -> None:
        """Starts with the view of `base` without later writes."""
        self._view, self._base = view_of(base), base.generation
        self._memory: list[MemorySegment] = []

    @property
    def rows(self) -> int:
        """The number of rows, which is also the row of the next put passage."""
        return self._view.rows

    @property
    def view(self) -> ShardView:
        return self._view

    def apply(self, writes: Sequence[LoggedWrite], dead: Iterable[int]) -> None:
        """Adds the passages of `writes` as new rows, and marks the rows `dead` as deleted."""
        rows_before = self._view.rows
        puts = {write.sequence: write.put for write in writes if write.put is not None}
        if puts:
            dimension = self._view.manifest.dimension
            added = MemoryPassages.pack(list(puts.values()), list(puts), dimension)
            self._add_segment(MemorySegment.build(added))
        deleted = self._delete(dead)
        passages = self._view.passages + self._view.rows - rows_before - deleted
        self._view = replace(self._view, passages=passages)

    def set_position(self, sequence: int, log_id: str) -> None:
        """Sets the id of the view's log, and the number of the last write in the view."""
        generation = live_generation(self._base, log_id)
        self._view = replace(self._view, generation=generation, sequence=sequence, log_id=log_id)

    def _add_segment(self, segment: MemorySegment) -> None:
        self._memory.append(segment)
        placed = [*self._view.segments, PlacedSegment(segment, self._view.rows)]
        count = tail_to_join([each.rows for each in self._memory])
        if count:
            first, *others = self._memory[-count:]
            segment = first.joined(*others)
            placed[-count:] = [_place_joined(segment, placed[-count:])]
            self._memory[-count:] = [segment]
        self._view = replace(self._view, segments=tuple(placed))

    def _delete(self, rows: Iterable[int]) -> int:
        """Marks rows as deleted; returns how many of them were alive."""
        placed = list(self._view.segments)
        firsts = [each.first_row for each in placed]
        rows_by_segment: dict[int, list[int]] = {}
        for row in rows:
            number = bisect_right(firsts, row) - 1
            rows_by_segment.setdefault(number, []).append(row - firsts[number])
        deleted = 0
        for number, segment_rows in rows_by_segment.items():
            alive = _live_rows(placed[number]).copy()
            deleted += int(alive[segment_rows].sum())
            alive[segment_rows] = False
            placed[number] = replace(placed[number], live_rows=alive)
        self._view = replace(self._view, segments=tuple(placed))
        return deleted


def _live_rows(placed: PlacedSegment) -> RowMask:
    return np.ones(placed.segment.rows, np.bool_) if placed.live_rows is None else placed.live_rows


def _place_joined(segment: MemorySegment, parts: Sequence[PlacedSegment]) -> PlacedSegment:
    """Places `segment`, which was joined from `parts`, at the rows of `parts`."""
    all_alive = all(part.live_rows is None for part in parts)
    alive = None if all_alive else np.concatenate([_live_rows(part) for part in parts])
    return PlacedSegment(segment, parts[0].first_row, alive)
