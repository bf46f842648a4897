"""Batches in hand: which of them may overlap, and the line up to which all are durable. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from winnow.cli.feed.batches import FeedBatch, numbered


@dataclass(frozen=True, slots=True)
class Claim:
    """The passages that a batch in hand stores and deletes."""

    ids: frozenset[str]
    """The stored passages, and the first deleted one of each document."""
    lasts: Mapping[str, int]
    """By document: the number of the last stored passage."""
    ends: Mapping[str, int]
    """By document: the number of the first deleted passage; all later ones are deleted, too."""

    @classmethod
    def of(cls, batch: FeedBatch) -> "Claim":
        """The claim of a batch whose rows are whole documents."""
        lasts: dict[str, int] = {}
        ends: dict[str, int] = {}
        for document, number in map(numbered, batch.ids):
            lasts[document] = max(number, lasts.get(document, number))
        for document, number in map(numbered, batch.after):
            ends[document] = min(number, ends.get(document, number))
        return cls(frozenset({*batch.ids, *batch.after}), lasts, ends)

    def meets(self, earlier: "Claim") -> bool:
        """Whether the batch has to wait for an earlier one: both claim a passage, and this batch
        might delete it before the earlier one stores it.
        """
        return not self.ids.isdisjoint(earlier.ids) or any(
            earlier.lasts.get(document, -1) >= first for document, first in self.ends.items()
        )


class Ledger:
    """Batches that were begun, in the order of their lines. They may end in any order."""

    def __init__(self, line: int = 0) -> None:
        """`line`: an earlier run made everything up to this line durable."""
        self.line = line
        """The line up to which everything is durable."""
        self._open: dict[int, int | None] = {}
        """By number of a batch: the last line that ends in it once it is stored, else None."""
        self._next = 0

    def begin(self) -> int:
        """Numbers a further batch, which is sent now."""
        self._next += 1
        self._open[self._next] = None
        return self._next

    def end(self, number: int, through: int) -> None:
        """Notes that a batch is stored, whose last line is `through`."""
        self._open[number] = through
        for first, stored in list(self._open.items()):
            if stored is None:
                break
            self.line = max(self.line, stored)
            del self._open[first]
