"""An immutable view of a shard: a sequence of segments, and the rows that are not deleted.

Rows of the base come first, then a row for each later put, in the order of the log. So a row is the
same passage in all views of one generation. A write makes a new view, which shares the segments.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from winnow.content_node.shard.bm25 import Rarities
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.rows import RowList, RowMask, SelectedRows
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.shard import MAX_FIELDS
from winnow.errors import GenerationGoneError
from winnow.inference.stop_signal import StopSignal
from winnow.reading.stored_passage import StoredPassage

Value = TypeVar("Value")
_GENERATION_DIGITS = 16


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """A segment and the range of its rows in a view."""

    segment: Segment
    first_row: int
    """The view's row that is the segment's row 0."""
    live_rows: RowMask | None = None
    """Rows that are neither deleted nor overwritten, [segment.rows]; None for all."""
    listed_rows: RowList | None = None
    """The same rows as a list if searches are to take time for these rows only."""

    def allowed_rows(self, where: str, stop: StopSignal | None = None) -> RowMask | None:
        """Returns the live rows that match the filter `where`, unless it is empty; None for all.

        Raises:
            InvalidRequestError: `where` is not a filter.
            StoppedError: `stop` was set.

        """
        if not where:
            return self.live_rows
        matching = self.segment.matching_rows(where, stop)
        return matching if self.live_rows is None else matching & self.live_rows

    def searched_rows(self, where: str, limit: int, stop: StopSignal | None = None) -> SelectedRows:
        """Returns the rows that a search may return: those of `allowed_rows`.

        Of a group of equal passages, only the first `limit` by id are left. Raises the errors of
        `allowed_rows`.
        """
        equal = self.segment.equal_passages
        if self.listed_rows is None:
            return equal.limit_groups(self.allowed_rows(where, stop), limit)
        listed = self.listed_rows
        if where:
            listed = listed.matching(self.segment.matching_rows(where, stop))
        return equal.limit_listed(listed, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardView:
    """The state of a shard that a question is answered from; later writes do not change it."""

    manifest: ShardManifest
    """Manifest of the base."""
    generation: str
    """Id of the generation. A row is the same passage in all views of one generation."""
    segments: tuple[PlacedSegment, ...]
    """Segments in the order of their rows, without gaps."""
    passages: int
    """Number of passages that are not deleted."""
    built_rarities: Rarities
    """Weights the words of questions that have no rarities of their own."""
    sequence: int = 0
    """Sequence number of the last write in the view."""
    log_id: str = ""
    """Id of the log of writes; empty without a log."""

    @property
    def rows(self) -> int:
        """Number of rows, including those of deleted passages."""
        last = self.segments[-1]
        return last.first_row + last.segment.rows

    @property
    def has_token_vectors(self) -> bool:
        """Whether the base has token vectors. Those of later writes can be computed."""
        return self.segments[0].segment.token_vectors is not None

    @property
    def field_names(self) -> tuple[str, ...]:
        """Sorted names of the metadata fields; at most `MAX_FIELDS`."""
        names = {name for placed in self.segments for name in placed.segment.field_names}
        return tuple(sorted(names)[:MAX_FIELDS])

    def map_rows(
        self, rows: Sequence[int], compute: Callable[[Segment, list[int]], Sequence[Value]]
    ) -> list[Value]:
        """Calls `compute` with each segment and its own rows; returns a value for each of `rows`.

        `rows` must be distinct. A segment counts its own rows from 0.
        """
        values: dict[int, Value] = {}
        for placed in self.segments:
            begin, end = placed.first_row, placed.first_row + placed.segment.rows
            if own := [row for row in rows if begin <= row < end]:
                found = compute(placed.segment, [row - begin for row in own])
                values.update(zip(own, found, strict=True))
        return [values[row] for row in rows]

    def ids_and_sequences(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        """Returns each row's passage id and the sequence number of its write (0: the build)."""
        return self.map_rows(rows, lambda segment, own: segment.ids_and_sequences(own))

    def load(self, row: int) -> StoredPassage:
        """Returns the passage of a row with its tokens and states, even if it was deleted.

        Raises:
            GenerationGoneError: the row's passage was removed by a merge, or is not here yet.
            ArtefactError: a file was changed.

        """
        if not 0 <= row < self.rows:
            raise GenerationGoneError(f"this replica has no row {row} yet: retrieve again")
        return self.map_rows([row], lambda segment, own: [segment.load(own[0])])[0]

    def find_row(self, passage_id: str, sequence: int) -> int | None:
        """Returns the row of the passage that was put by the write `sequence` (0: the build).

        Finds the row even if the passage was deleted. Returns None without such a row.

        Raises:
            ArtefactError: a file was changed.

        """
        for placed in reversed(self.segments):
            row = placed.segment.find_row(passage_id, sequence)
            if row is not None:
                return placed.first_row + row
        return None


def view_of(segment: StoredSegment) -> ShardView:
    """Returns the view of a shard without later writes."""
    manifest = segment.manifest
    return ShardView(
        manifest=manifest,
        generation=segment.generation,
        segments=(PlacedSegment(segment, 0),),
        passages=manifest.passages,
        built_rarities=segment.built_rarities,
        sequence=manifest.sequence,
        log_id=manifest.log_id,
    )


def live_generation(base: str, log_id: str) -> str:
    """Returns the generation of the views that combine the base `base` with the log `log_id`."""
    return hashlib.sha256(json.dumps([base, log_id]).encode()).hexdigest()[:_GENERATION_DIGITS]
