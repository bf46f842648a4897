"""A shard at one moment: an immutable sequence of segments, and which of their rows are alive.

Rows of the base come first, then a row for each put since, in the order of the log. So a row is the
same passage in all views of one generation. A write makes a new view, which shares the segments.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.rows import RowMask
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.shard import MOST_FIELDS
from winnow.errors import GenerationGoneError
from winnow.inference.stop import Stop

Value = TypeVar("Value")
_GENERATION_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Placed:
    """A segment and its place in a view."""

    segment: Segment
    first: int
    """The view's row that is the segment's row 0."""
    alive: RowMask | None = None
    """Rows that were not deleted or overwritten since, [segment.rows]; None for all."""

    @property
    def end(self) -> int:
        """The view's row after the segment's last one."""
        return self.first + self.segment.rows

    def allowed(self, where: str, stop: Stop | None = None) -> RowMask | None:
        """Returns the rows that are alive and accepted by a filter, if there is one; None for all.

        Raises:
            InvalidRequestError: `where` is not a filter.
            StoppedError: `stop` was set.

        """
        if not where:
            return self.alive
        through = self.segment.where(where, stop)
        return through if self.alive is None else through & self.alive


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardView:
    """What a question is answered from; later writes do not change it."""

    manifest: ShardManifest
    """Manifest of the base."""
    generation: str
    """Name of the rows: a row is the same passage in all views of one generation."""
    placed: tuple[Placed, ...]
    """Segments in the order of their rows, without gaps."""
    passages: int
    """Number of passages that are alive."""
    built: BuiltRarities
    """How rare words were when the index was built."""
    sequence: int = 0
    """The last write that the view holds."""
    log_id: str = ""
    """Id of the log of writes; empty if the shard takes none."""

    @property
    def rows(self) -> int:
        """Number of rows, including those of passages that are gone."""
        return self.placed[-1].end

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the metadata's fields, in order; at most `MOST_FIELDS`."""
        found = {name for placed in self.placed for name in placed.segment.fields}
        return tuple(sorted(found)[:MOST_FIELDS])

    def each(
        self, rows: Sequence[int], look_up: Callable[[Segment, list[int]], Sequence[Value]]
    ) -> list[Value]:
        """Looks rows up in their segments; returns a value for each of `rows`, which are
        distinct.
        """
        firsts = [placed.first for placed in self.placed]
        own: dict[int, list[int]] = {}
        for row in rows:
            own.setdefault(bisect_right(firsts, row) - 1, []).append(row)
        values: dict[int, Value] = {}
        for number, some in own.items():
            placed = self.placed[number]
            found = look_up(placed.segment, [row - placed.first for row in some])
            values.update(zip(some, found, strict=True))
        return [values[row] for row in rows]

    def named(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        """Returns the id of each passage, and the write that put it."""
        return self.each(rows, lambda segment, own: segment.named(own))

    def load(self, row: int) -> StoredPassage:
        """Returns a passage as the reader needs it, even if it was deleted since.

        Raises:
            GenerationGoneError: the row holds no passage any more.
            ArtefactError: a file was written to.

        """
        if not 0 <= row < self.rows:
            raise GenerationGoneError(f"there is no row {row} yet: retrieve again")
        return self.each([row], lambda segment, own: [segment.load(own[0])])[0]

    def find(self, passage_id: str, sequence: int) -> int | None:
        """Returns the row of a passage as this write put it (0: the build), even if it was deleted
        since; None if there is no such row.

        Raises:
            ArtefactError: a file was written to.

        """
        for placed in reversed(self.placed):
            row = placed.segment.find(passage_id, sequence)
            if row is not None:
                return placed.first + row
        return None


def view_of(segment: StoredSegment) -> ShardView:
    """Returns the view of a shard without writes since its files were written."""
    manifest = segment.manifest
    return ShardView(
        manifest=manifest,
        generation=segment.generation,
        placed=(Placed(segment, 0),),
        passages=manifest.passages,
        built=segment.built,
        sequence=manifest.sequence,
        log_id=manifest.log_id,
    )


def live_generation(base: str, log_id: str) -> str:
    """Returns the generation of views that begin with a base of generation `base` and follow
    a log.
    """
    return hashlib.sha256(json.dumps([base, log_id]).encode()).hexdigest()[:_GENERATION_DIGITS]
