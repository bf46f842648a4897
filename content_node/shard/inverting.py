"""Inverts the tokens of rows to the rows of tokens. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class InvertedTokens:
    """The rows of every token, token after token."""

    starts: NDArray[np.int64]
    """Index in `rows` of each token's first row, and the end, [greatest token + 2]."""
    rows: NDArray[np.uint32]
    """Ascending for each token."""
    counts: NDArray[np.unsignedinteger]
    """How often each of these rows contains the token; at least once."""


def invert(tokens: NDArray[np.unsignedinteger], ends: NDArray[np.int64]) -> InvertedTokens:
    """Inverts `tokens`, which are stored row after row. The tokens of row i end at `ends[i]`.

    Sorting takes about 25 bytes of memory for each token.
    """
    rows = np.repeat(np.arange(len(ends), dtype=np.uint32), np.diff(ends, prepend=0))
    order = np.argsort(tokens, kind="stable")  # rows stay ascending
    tokens, rows = tokens[order], rows[order]
    is_first = np.ones(len(tokens), np.bool_)  # of equal tokens in the same row
    is_first[1:] = (tokens[1:] != tokens[:-1]) | (rows[1:] != rows[:-1])
    firsts = np.flatnonzero(is_first)
    counts = np.diff(firsts, append=len(tokens))
    rows_per_token = np.bincount(tokens[firsts].astype(np.int64))
    return InvertedTokens(
        np.append(0, np.cumsum(rows_per_token)).astype(np.int64),
        rows[firsts],
        counts.astype(np.min_scalar_type(int(counts.max(initial=0)))),
    )
