"""The segments of a view while they change: passages that were put after the base, and dead rows.

Changed by one thread. A view never changes once it was shown: masks are copied before a change.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from winnow.content_node.live.entry import Logged
from winnow.content_node.shard.joining import tail_to_join
from winnow.content_node.shard.memory_passages import MemoryPassages
from winnow.content_node.shard.memory_segment import MemorySegment
from winnow.content_node.shard.rows import RowMask
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.content_node.shard.view import PlacedSegment, ShardView, live_generation, view_of


class Buffer:
    """A base, and segments in memory after it."""

    def __init__(self, base: StoredSegment) -> None:
        """Begins with no writes after `base`."""
        self._view, self._base = view_of(base), base.generation
        self._memory: list[MemorySegment] = []

    @property
    def rows(self) -> int:
        """The number of rows, which is the row of the next passage."""
        return self._view.rows

    @property
    def view(self) -> ShardView:
        return self._view

    def change(self, writes: Sequence[Logged], dead: Iterable[int]) -> None:
        """Adds the passages that writes put, in the next rows, and marks `dead` rows."""
        before = self._view.rows
        puts = {write.sequence: write.put for write in writes if write.put is not None}
        if puts:
            dimension = self._view.manifest.dimension
            added = MemoryPassages.pack(list(puts.values()), list(puts), dimension)
            self._add(MemorySegment.build(added))
        ended = self._end(dead)
        passages = self._view.passages + self._view.rows - before - ended
        self._view = replace(self._view, passages=passages)

    def show(self, sequence: int, log_id: str) -> None:
        """Labels the view with the last write of a log that it contains."""
        generation = live_generation(self._base, log_id)
        self._view = replace(self._view, generation=generation, sequence=sequence, log_id=log_id)

    def _add(self, segment: MemorySegment) -> None:
        self._memory.append(segment)
        placed = [*self._view.segments, PlacedSegment(segment, self._view.rows)]
        count = tail_to_join([each.rows for each in self._memory])
        if count:
            first, *others = self._memory[-count:]
            segment = first.joined(*others)
            placed[-count:] = [_joined(segment, placed[-count:])]
            self._memory[-count:] = [segment]
        self._view = replace(self._view, segments=tuple(placed))

    def _end(self, rows: Iterable[int]) -> int:
        """Marks rows as dead; returns how many of them were alive."""
        placed = list(self._view.segments)
        firsts = [each.first_row for each in placed]
        own: dict[int, list[int]] = {}
        for row in rows:
            number = bisect_right(firsts, row) - 1
            own.setdefault(number, []).append(row - firsts[number])
        ended = 0
        for number, dead in own.items():
            alive = _alive(placed[number]).copy()
            ended += int(alive[dead].sum())
            alive[dead] = False
            placed[number] = replace(placed[number], live_rows=alive)
        self._view = replace(self._view, segments=tuple(placed))
        return ended


def _alive(placed: PlacedSegment) -> RowMask:
    return np.ones(placed.segment.rows, np.bool_) if placed.live_rows is None else placed.live_rows


def _joined(segment: MemorySegment, parts: Sequence[PlacedSegment]) -> PlacedSegment:
    """A segment in the place of the segments that it was joined from."""
    all_alive = all(part.live_rows is None for part in parts)
    alive = None if all_alive else np.concatenate([_alive(part) for part in parts])
    return PlacedSegment(segment, parts[0].first_row, alive)
