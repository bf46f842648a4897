"""Logits to spans. Pure.

DPR's rule (Karpukhin et al. 2020, section 6.1): the span with the highest sum of start and end
logit, no longer than a limit, never outside the passage.
"""

import unicodedata
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """First and last token of a span, both inside it, and start logit plus end logit."""

    first: int
    last: int
    score: float


def best_span(start: Logits, end: Logits, max_tokens: int) -> TokenSpan | None:
    """The best span of at most `max_tokens` tokens over float32 [tokens] logits.

    The earliest, then shortest, of equals. None without tokens, or where no logit is a number.
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
    return TokenSpan(first, first + further, score) if np.isfinite(score) else None


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Grows the characters [start, end) of `text` until no word, number or grapheme is cut."""
    while 0 < start < len(text) and _joined(text, start):
        start -= 1
    while 0 < end < len(text) and _joined(text, end):
        end += 1
    return start, end


def _joined(text: str, place: int) -> bool:
    """Whether the characters on both sides of `place` belong to one word."""
    before, after = text[place - 1], text[place]
    if _extends(after) or before == "\u200d":
        return True
    if _extends(before) and after.isalnum():
        return True
    if before.isalnum() and after.isalnum():
        return True
    return _inside_number(text, place)


def _extends(character: str) -> bool:
    """Marks, variation selectors and joiners continue the character before them."""
    return character == "\u200d" or unicodedata.category(character).startswith("M")


def _inside_number(text: str, place: int) -> bool:
    """Whether a separator of digits stands at `place` or before it: 2,700 is one number."""
    for separator in (place - 1, place):
        if 0 < separator < len(text) - 1 and text[separator] in ".,":
            return text[separator - 1].isdigit() and text[separator + 1].isdigit()
    return False


def _numbers(logits: Logits) -> Logits:
    return np.where(np.isnan(logits), np.float32(-np.inf), logits)
