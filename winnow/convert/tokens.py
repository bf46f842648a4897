"""Converts token vectors of questions to fields of messages and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from winnow.domain.question import QuestionTokens
from winnow.errors import invalid_field

_LEVEL_BYTES = 2
"""Size of a level of a question's token."""


def token_fields(tokens: QuestionTokens | None) -> dict[str, Any]:
    """Returns the fields `token_levels` and `token_weights` of a message; none without tokens."""
    if tokens is None:
        return {}
    levels = tokens.levels.astype("<i2", copy=False).tobytes()
    return {"token_levels": levels, "token_weights": tokens.weights.tolist()}


def tokens_of_fields(
    token_levels: bytes, token_weights: Sequence[float], prefix: str = ""
) -> QuestionTokens | None:
    """Converts the fields of a message; returns None if they are empty.

    Raises InvalidRequestError, which names the field after `prefix`, if they are invalid.
    """
    weights = np.array(token_weights, np.float32)
    if not len(weights) and not token_levels:
        return None
    values, rest = divmod(len(token_levels), _LEVEL_BYTES * max(len(weights), 1))
    if rest or not values or not len(weights):
        raise invalid_field(
            f"{prefix}token_levels", f"{len(token_levels)} bytes do not fit {len(weights)} tokens"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise invalid_field(f"{prefix}token_weights", "every value must be finite and at least 0")
    levels = np.frombuffer(token_levels, "<i2").reshape(len(weights), values)
    return QuestionTokens(levels.astype(np.int16, copy=False), weights)
