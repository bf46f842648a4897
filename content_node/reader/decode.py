"""Decodes logits to spans. Pure.

DPR's rule (Karpukhin et al. 2020, section 6.1): the span with the highest sum of start and end
logit, no longer than a limit, never outside the passage.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span's first and last token, both inclusive, and the sum of its start and end logit."""

    first: int
    last: int
    score: float


def best_span(start: Logits, end: Logits, max_tokens: int) -> ScoredSpan | None:
    """Returns the best span of at most `max_tokens` tokens over float32 [tokens] logits.

    Of equal spans it is the earliest, then the shortest. None without tokens or finite logits.
    """
    tokens = len(start)
    if tokens == 0:
        return None
    start, end = _numbers(start), _numbers(end)
    reach = min(max_tokens, tokens)
    padded = np.concatenate([end, np.full(reach - 1, -np.inf, dtype=np.float32)])
    scores = start[:, None] + sliding_window_view(padded, reach)
    first, further = divmod(int(scores.argmax()), reach)
    score = float(scores[first, further])
    return ScoredSpan(first, first + further, score) if np.isfinite(score) else None


def _numbers(logits: Logits) -> Logits:
    return np.where(np.isnan(logits), np.float32(-np.inf), logits)
