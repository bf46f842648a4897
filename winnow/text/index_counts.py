"""Counts how many passages of an index contain each word, all writes included. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from winnow.domain.question import EncodedQuestion
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import WinnowError
from winnow.text.rarity import mean_length, rarities

_MAX_TOKEN_ID = 10_000_000
"""Largest valid token id, which bounds the memory. No vocabulary is larger."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexCounts:
    """The word counts of a whole index."""

    containing: NDArray[np.int64]
    """Number of passages that contain each token, by token id."""
    passages: int
    """Number of passages of the index."""
    tokens: int
    """Number of tokens of all passages."""

    @classmethod
    def of(cls, built: WordCounts, changes: Iterable[WordChanges]) -> Self:
        """Adds the changes that writes to each shard made to the counts of the built index.

        Raises:
            WinnowError: the counts are inconsistent: a count is negative, or above the number of
                passages.

        """
        all_changes = list(changes)
        greatest = max((_greatest_token_id(each) for each in all_changes), default=-1)
        containing = np.zeros(max(built.vocabulary, greatest + 1), np.int64)
        containing[: built.vocabulary] = built.passages
        for each in all_changes:
            containing[each.ids] += each.by
        passages = built.total + sum(each.passages for each in all_changes)
        tokens = built.tokens + sum(each.tokens for each in all_changes)
        if containing.min(initial=0) < 0 or containing.max(initial=0) > passages or tokens < 0:
            raise WinnowError(
                f"inconsistent document frequencies: {containing.min(initial=0)} to "
                f"{containing.max(initial=0)} for {passages} passages and {tokens} tokens"
            )
        return cls(containing, passages, tokens)

    def weigh(self, question: EncodedQuestion) -> EncodedQuestion:
        """Returns the question with the rarity of each of its tokens."""
        ids = np.array(question.token_ids, np.int64)
        known = ids < len(self.containing)
        containing = np.where(known, self.containing[np.where(known, ids, 0)], 0)
        rarity = rarities(containing, self.passages)
        length = mean_length(self.tokens, self.passages)
        return replace(question, rarities=tuple(rarity.tolist()), mean_length=length)


def _greatest_token_id(changes: WordChanges) -> int:
    """Returns the greatest token id, or -1 if there is none.

    Raises WinnowError if the ids are not ascending, or if an id is too large.
    """
    ids = changes.ids.astype(np.int64)
    if (np.diff(ids) <= 0).any():
        raise WinnowError(
            "inconsistent document frequencies: the changed token ids are not ascending"
        )
    greatest = int(ids[-1]) if len(ids) else -1
    if greatest > _MAX_TOKEN_ID:
        raise WinnowError(f"inconsistent document frequencies: unknown token id {greatest}")
    return greatest


def have_same_counts(counts: WordCounts, other: WordCounts) -> bool:
    """Whether two shards report the same counts of the built index."""
    totals_match = (counts.total, counts.tokens) == (other.total, other.tokens)
    return totals_match and np.array_equal(counts.passages, other.passages)
