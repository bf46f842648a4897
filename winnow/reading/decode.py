"""Decodes logits to spans. Pure.

The best span has the highest sum of start and end logit (DPR: Karpukhin et al. 2020, section 6.1).
It lies in the passage and has a limited length.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from winnow.reading.model import Logits


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span of tokens; `first` and `last` are both inclusive."""

    first: int
    last: int
    score: float
    """Sum of the start and end logit."""


def best_span(start: Logits, end: Logits, max_tokens: int) -> ScoredSpan | None:
    """Returns the best span of at most `max_tokens` tokens for float32 [tokens] logits.

    Of spans with equal scores, the earliest wins, then the shortest. None without finite logits.
    """
    tokens = len(start)
    if tokens == 0:
        return None
    start, end = _replace_nan(start), _replace_nan(end)
    limit = min(max_tokens, tokens)
    padded = np.concatenate([end, np.full(limit - 1, -np.inf, dtype=np.float32)])
    scores = start[:, None] + sliding_window_view(padded, limit)
    first, extra = divmod(int(scores.argmax()), limit)
    score = float(scores[first, extra])
    return ScoredSpan(first, first + extra, score) if np.isfinite(score) else None


def _replace_nan(logits: Logits) -> Logits:
    return np.where(np.isnan(logits), np.float32(-np.inf), logits)
