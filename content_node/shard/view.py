"""A shard as it is at one moment: an immutable row of segments, and which of their rows are alive.

Rows of the base come first, then one for each put since, in the order of the log: in all views of
one generation a row is the same passage. A write makes a new view, which shares the segments.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.segment import Rows, Segment
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.shard import MOST_FIELDS
from winnow.errors import GenerationGoneError
from winnow.inference.stop import Stop

Value = TypeVar("Value")
_GENERATION_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Placed:
    """A segment in its place."""

    segment: Segment
    first: int
    """The view's row that is the segment's row 0."""
    alive: Rows | None = None
    """The rows that were not deleted or overwritten since, [segment.rows]; None for all."""

    @property
    def end(self) -> int:
        """The row after its last one."""
        return self.first + self.segment.rows

    def allowed(self, where: str, stop: Stop | None = None) -> Rows | None:
        """The rows that are alive and let through by a filter; None for all.

        Raises:
            InvalidRequestError: it is no filter.
            StoppedError: `stop` was set.

        """
        if not where:
            return self.alive
        through = self.segment.where(where, stop)
        return through if self.alive is None else through & self.alive


@dataclass(frozen=True, slots=True)
class ShardView:
    """What a question is answered from, whatever is written meanwhile."""

    manifest: ShardManifest
    """Of the base."""
    generation: str
    """Names the rows: in all views of one generation a row is the same passage."""
    placed: tuple[Placed, ...]
    """By their rows, without gaps."""
    passages: int
    """How many are alive."""
    built: BuiltRarities
    """How rare words were when the index was built."""
    sequence: int = 0
    """The last write that is in it."""
    log_id: str = ""
    """Names the log of writes; empty if none are taken."""

    @property
    def rows(self) -> int:
        """How many rows there are, also those of passages that are gone."""
        return self.placed[-1].end

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the metadata's fields, in order; at most `MOST_FIELDS`."""
        found = {name for placed in self.placed for name in placed.segment.fields}
        return tuple(sorted(found)[:MOST_FIELDS])

    def each(
        self, rows: Sequence[int], ask: Callable[[Segment, list[int]], Sequence[Value]]
    ) -> list[Value]:
        """What segments say of their own rows; in the order of `rows`, which are distinct."""
        firsts = [placed.first for placed in self.placed]
        own: dict[int, list[int]] = {}
        for row in rows:
            own.setdefault(bisect_right(firsts, row) - 1, []).append(row)
        said: dict[int, Value] = {}
        for number, some in own.items():
            placed = self.placed[number]
            found = ask(placed.segment, [row - placed.first for row in some])
            said.update(zip(some, found, strict=True))
        return [said[row] for row in rows]

    def named(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        """The id of each passage, and the write that put it."""
        return self.each(rows, lambda segment, own: segment.named(own))

    def load(self, row: int) -> StoredPassage:
        """A passage as the reader needs it, also one that was deleted since.

        Raises:
            GenerationGoneError: the row holds nothing any more.
            ArtefactError: a file was written to.

        """
        if not 0 <= row < self.rows:
            raise GenerationGoneError(f"there is no row {row} yet: retrieve again")
        return self.each([row], lambda segment, own: [segment.load(own[0])])[0]

    def find(self, passage_id: str, sequence: int) -> int | None:
        """The row of a passage as this write put it (0: as it was built), also if it was deleted
        since; None if it is not there.

        Raises:
            ArtefactError: a file was written to.

        """
        for placed in reversed(self.placed):
            row = placed.segment.find(passage_id, sequence)
            if row is not None:
                return placed.first + row
        return None


def view_of(segment: StoredSegment) -> ShardView:
    """A shard that takes no writes, or took none since it was written."""
    manifest = segment.manifest
    return ShardView(
        manifest,
        segment.generation,
        (Placed(segment, 0),),
        manifest.passages,
        segment.built,
        manifest.sequence,
        manifest.log_id,
    )


def live_generation(base: str, log_id: str) -> str:
    """The generation of views that begin with a base of generation `base` and follow a log."""
    return hashlib.sha256(json.dumps([base, log_id]).encode()).hexdigest()[:_GENERATION_DIGITS]
