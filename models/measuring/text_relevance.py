"""Fits the relevance of texts that callers send, on passages that were retrieved.

A logistic regression yields the probability that a passage contains the answer. It depends on the
reader's relevance logit and on the words of the question, with rarities that need no index. Each
kind of text counts equally, however many questions it has.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from models.data import DataError
from models.measuring.calibrate import Candidates
from models.measuring.fitting import fit_logistic
from winnow.domain.text_relevance import TextRelevance

_SIGNS = (1.0, 1.0)
_RIDGE = 1e-4
_MIN_SPREAD = 1e-6
LOGIT_ALONE = TextRelevance(logit=1.0, words=0.0, bias=0.0)
"""Orders texts by the reader's relevance logit."""

Floats = NDArray[np.float64]


def fit_text_relevance(kinds: Sequence[Candidates], passages: int) -> TextRelevance:
    """Returns the weights that fit the first `passages` passages of each question best.

    Raises:
        DataError: all passages contain an answer, or none does.

    """
    inputs = [_inputs(each, passages).reshape(-1, len(_SIGNS)) for each in kinds]
    targets = [each.has_answer[:, :passages].ravel().astype(np.float64) for each in kinds]
    every, target = np.concatenate(inputs), np.concatenate(targets)
    if target.min() == target.max():
        raise DataError(
            "the relevance of texts cannot be fitted: all retrieved passages contain an answer, or "
            "none does"
        )
    spread = np.maximum(every.std(0), _MIN_SPREAD)
    weights = [np.full(len(each), 1 / len(each) / len(kinds)) for each in inputs]
    slopes, bias = fit_logistic(
        torch.tensor(every / spread),
        torch.tensor(target),
        _SIGNS,
        _RIDGE,
        torch.tensor(np.concatenate(weights)),
    )
    logit, words = (slopes.numpy() / spread).tolist()
    return TextRelevance(logit=logit, words=words, bias=bias)


def first_is_right(candidates: Candidates, weights: TextRelevance, passages: int) -> float:
    """Returns the percentage of questions whose most relevant passage contains the answer.

    Of the first `passages` passages of each question. Leaves out questions for which all or none of
    these contain it. Not a number if no question is left.
    """
    has_answer = candidates.has_answer[:, :passages]
    chosen = has_answer.any(1) & ~has_answer.all(1)
    if not chosen.any():
        return float("nan")
    odds = _inputs(candidates, passages)[chosen] @ np.array([weights.logit, weights.words])
    return 100 * float(has_answer[chosen][np.arange(len(odds)), odds.argmax(1)].mean())


def _inputs(candidates: Candidates, passages: int) -> Floats:
    """Returns the logit and the words of each passage, [questions, passages, 2]."""
    logits = candidates.features[:, :passages, 0]
    return np.stack([logits, candidates.word_shares[:, :passages]], axis=-1)
