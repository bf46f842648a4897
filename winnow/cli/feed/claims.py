"""Which passages a batch stores and deletes, and whether two batches meet there. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from winnow.cli.feed.batches import FeedBatch, numbered


@dataclass(frozen=True, slots=True)
class Claim:
    """What a batch in hand works on."""

    ids: frozenset[str]
    """That it stores, and the first ones that it deletes."""
    lasts: Mapping[str, int]
    """By document: the last of its passages that are stored."""
    ends: Mapping[str, int]
    """By document: from which one on its passages are deleted."""

    @classmethod
    def of(cls, batch: FeedBatch) -> "Claim":
        """All that a batch does, if rows that end in it are whole documents."""
        lasts: dict[str, int] = {}
        ends: dict[str, int] = {}
        for document, number in map(numbered, batch.ids):
            lasts[document] = max(number, lasts.get(document, number))
        for document, number in map(numbered, batch.after):
            ends[document] = min(number, ends.get(document, number))
        return cls(frozenset({*batch.ids, *batch.after}), lasts, ends)

    def meets(self, earlier: "Claim") -> bool:
        """Whether it has to wait for an earlier one: it would delete, before that is stored, what
        that one stores.
        """
        return not self.ids.isdisjoint(earlier.ids) or any(
            earlier.lasts.get(document, -1) >= first for document, first in self.ends.items()
        )
