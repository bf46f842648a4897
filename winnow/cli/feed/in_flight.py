"""Tracks the batches in flight. Pure.

Decides which batches may be in flight together, and up to which line all rows are durable.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from winnow.cli.feed.batches import FeedBatch, split_passage_id


@dataclass(frozen=True, slots=True)
class Claim:
    """The passages that a batch in flight stores and deletes."""

    ids: frozenset[str]
    """Ids of the stored passages, and of the first deleted passage of each document."""
    last_stored: Mapping[str, int]
    """Number of the last stored passage, by document."""
    first_deleted: Mapping[str, int]
    """Number of the first deleted passage, by document. All later passages are deleted, too."""

    @classmethod
    def of(cls, batch: FeedBatch) -> "Claim":
        """Builds the claim of a batch."""
        last_stored: dict[str, int] = {}
        first_deleted: dict[str, int] = {}
        for document, number in map(split_passage_id, batch.ids):
            last_stored[document] = max(number, last_stored.get(document, number))
        for document, number in map(split_passage_id, batch.deletion_starts):
            first_deleted[document] = min(number, first_deleted.get(document, number))
        return cls(frozenset({*batch.ids, *batch.deletion_starts}), last_stored, first_deleted)

    def conflicts_with(self, earlier: "Claim") -> bool:
        """Whether this batch must wait for an earlier batch that changes the same passage.

        Otherwise, for example, this batch might delete a passage before the earlier one stores it.
        """
        return not self.ids.isdisjoint(earlier.ids) or any(
            earlier.last_stored.get(document, -1) >= first
            for document, first in self.first_deleted.items()
        )


class Ledger:
    """Tracks batches, which begin in the order of their lines and may finish in any order."""

    def __init__(self, line: int = 0) -> None:
        """`line`: the line up to which an earlier run made all rows durable."""
        self.line = line
        """All rows up to this line are durable."""
        self._open: dict[int, int | None] = {}
        """By number of the batch: its last line if the batch is stored, else None."""
        self._next = 0

    def begin_batch(self) -> int:
        """Records that the next batch is sent now; returns its number."""
        self._next += 1
        self._open[self._next] = None
        return self._next

    def finish_batch(self, number: int, last_line: int) -> None:
        """Records that a batch is stored. Advances `line` if all earlier batches are stored."""
        self._open[number] = last_line
        for batch, line in list(self._open.items()):
            if line is None:
                break
            self.line = max(self.line, line)
            del self._open[batch]
