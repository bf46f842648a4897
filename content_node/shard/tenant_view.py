"""The view of a shard that one tenant sees: rows of other tenants count as deleted.

So every search, list, lookup and count of this view sees passages of the tenant only. The weights
of words are counted over these passages, too: other passages change no score.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import Terms
from winnow.content_node.shard.rows import RowList
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.view import PlacedSegment, ShardView
from winnow.domain.question import EncodedQuestion
from winnow.domain.tenant import prefix_of
from winnow.text.rarity import mean_length, rarities

MAX_LISTED_ROWS = 20_000
"""Passages of a tenant in a segment up to which they are searched exactly, and as a list."""


def view_of_tenant(view: ShardView, tenant: str) -> ShardView:
    """Returns the view that a tenant sees.

    The first call for a segment sorts its ids.

    Raises:
        ArtefactError: a file was changed.

    """
    rows = tuple(_rows_of_tenant(placed, tenant) for placed in view.segments)
    parts = tuple(map(_part_of_tenant, view.segments, rows))
    words = TenantWords(tuple(zip((part.segment for part in parts), rows, strict=True)))
    return replace(view, segments=parts, passages=words.passages, built_rarities=words)


def _rows_of_tenant(placed: PlacedSegment, tenant: str) -> RowList:
    """Returns the live rows of a tenant in a segment."""
    rows = np.sort(placed.segment.rows_with_prefix(prefix_of(tenant)))
    return RowList(rows if placed.live_rows is None else rows[placed.live_rows[rows]])


def _part_of_tenant(placed: PlacedSegment, rows: RowList) -> PlacedSegment:
    """Returns a segment of which only `rows` are live."""
    return replace(
        placed,
        live_rows=rows.mask(placed.segment.rows),
        listed_rows=rows if len(rows) <= MAX_LISTED_ROWS else None,
    )


@dataclass(frozen=True, slots=True)
class TenantWords:
    """Counts the words of the passages that a tenant sees."""

    parts: tuple[tuple[Segment, RowList], ...]
    """The segments, each with the rows of the tenant."""

    @property
    def passages(self) -> int:
        """Number of passages."""
        return sum(len(rows) for _, rows in self.parts)

    @property
    def tokens(self) -> int:
        """Number of tokens of all passages."""
        return sum(segment.words.count_tokens(own.rows) for segment, own in self.parts)

    def containing(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of passages that contain each of the ascending token ids, [ids]."""
        counts = np.zeros(len(ids), np.int64)
        for segment, own in self.parts:
            if len(own):
                counts += segment.postings.frequencies_among(ids, own)
        return counts

    def terms(self, question: EncodedQuestion) -> Terms:
        """Returns the terms of a question, with the rarities of the question if it has some."""
        ids, first = np.unique(np.array(question.token_ids, np.int64), return_index=True)
        if question.rarities:
            given = np.array(question.rarities, np.float64)[first]
            return Terms(ids, given, question.mean_length)
        passages = self.passages
        return Terms(
            ids, rarities(self.containing(ids), passages), mean_length(self.tokens, passages)
        )
