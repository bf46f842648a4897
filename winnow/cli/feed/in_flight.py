"""Batches in flight: which may be sent together, and the line up to which all is durable. Pure."""

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
        """The claim of a batch."""
        last_stored: dict[str, int] = {}
        first_deleted: dict[str, int] = {}
        for document, number in map(split_passage_id, batch.ids):
            last_stored[document] = max(number, last_stored.get(document, number))
        for document, number in map(split_passage_id, batch.deletion_starts):
            first_deleted[document] = min(number, first_deleted.get(document, number))
        return cls(frozenset({*batch.ids, *batch.deletion_starts}), last_stored, first_deleted)

    def conflicts_with(self, earlier: "Claim") -> bool:
        """Whether this batch must wait for an earlier one, since both change the same passage.

        Otherwise this batch might delete a passage before the earlier one stores it.
        """
        return not self.ids.isdisjoint(earlier.ids) or any(
            earlier.last_stored.get(document, -1) >= first
            for document, first in self.first_deleted.items()
        )


class Ledger:
    """Tracks batches, which begin in the order of their lines and may finish in any order."""

    def __init__(self, line: int = 0) -> None:
        """`line`: all is durable up to this line, by an earlier run."""
        self.line = line
        """All lines up to this one are durable."""
        self._open: dict[int, int | None] = {}
        """The last line of each stored batch, None for other batches; by number of the batch."""
        self._next = 0

    def begin_batch(self) -> int:
        """Returns the number of the next batch, which is sent now."""
        self._next += 1
        self._open[self._next] = None
        return self._next

    def finish_batch(self, number: int, last_line: int) -> None:
        """Notes that a batch is stored."""
        self._open[number] = last_line
        for batch, line in list(self._open.items()):
            if line is None:
                break
            self.line = max(self.line, line)
            del self._open[batch]
