"""Number of passages of an index that contain each word, all writes included. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from winnow.domain.question import EncodedQuestion
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import WinnowError
from winnow.text.rarity import mean_length, rarities

_MOST_TOKEN = 10_000_000
"""Greatest token id that is accepted, which bounds the memory; no vocabulary is larger."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexCounts:
    """The counts of a whole index."""

    containing: NDArray[np.int64]
    """Number of passages that contain each token, [greatest token + 1]."""
    passages: int
    tokens: int

    @classmethod
    def of(cls, built: WordCounts, changes: Iterable[WordChanges]) -> Self:
        """Adds the changes by writes to each shard to the counts from when the index was built.

        Raises:
            WinnowError: the counts are impossible: fewer than no passages contain a token, or more
                than there are.

        """
        every = list(changes)
        greatest = max((_greatest(each) for each in every), default=-1)
        containing = np.zeros(max(built.vocabulary, greatest + 1), np.int64)
        containing[: built.vocabulary] = built.passages
        for each in every:
            containing[each.ids] += each.by
        passages = built.total + sum(each.passages for each in every)
        tokens = built.tokens + sum(each.tokens for each in every)
        if containing.min(initial=0) < 0 or containing.max(initial=0) > passages or tokens < 0:
            raise WinnowError(
                f"inconsistent document frequencies: {containing.min(initial=0)} to "
                f"{containing.max(initial=0)} for {passages} passages and {tokens} tokens"
            )
        return cls(containing, passages, tokens)

    def weigh(self, question: EncodedQuestion) -> EncodedQuestion:
        """The question with how rare its tokens are."""
        ids = np.array(question.token_ids, np.int64)
        known = ids < len(self.containing)
        containing = np.where(known, self.containing[np.where(known, ids, 0)], 0)
        rarity = rarities(containing, self.passages)
        length = mean_length(self.tokens, self.passages)
        return replace(question, rarities=tuple(rarity.tolist()), mean_length=length)


def _greatest(changes: WordChanges) -> int:
    """The greatest token, -1 if there is none; raises WinnowError if tokens are not in order."""
    ids = changes.ids.astype(np.int64)
    if (np.diff(ids) <= 0).any():
        raise WinnowError("inconsistent document frequencies: the changed tokens are not in order")
    greatest = int(ids[-1]) if len(ids) else -1
    if greatest > _MOST_TOKEN:
        raise WinnowError(f"inconsistent document frequencies: there is no token {greatest}")
    return greatest


def same(one: WordCounts, other: WordCounts) -> bool:
    """Whether two shards have the same counts from when the index was built."""
    totals = (one.total, one.tokens) == (other.total, other.tokens)
    return totals and np.array_equal(one.passages, other.passages)
