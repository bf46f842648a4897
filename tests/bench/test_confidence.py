"""Whether confidence can be believed: the figures of `bench/confidence.py`."""

from typing import Any

import numpy as np
import pytest

from bench.confidence import best, calibration_error, least


def answer(text: str, score: float, distance: float, gold: bool = False) -> dict[str, Any]:
    return {
        "text": text,
        "passage": text,
        "score": score,
        "hybrid_distance": distance,
        "gold": gold,
        "confidence": score / 10,
    }


ROW = {
    "accepted": ["Ada"],
    "answers": [answer("Ada", 9, 0.1, gold=True), answer("Bo", 5, 0.2), answer("Cy", 8, 0.3)],
}


@pytest.mark.parametrize(
    ("passages", "without_gold", "found"),
    [(3, False, (0.9, True)), (2, True, (0.8, False)), (1, True, (0.5, False))],
)
def test_without_the_gold_passage_the_next_one_is_read(
    passages: int, without_gold: bool, found: tuple[float, bool]
) -> None:
    assert best(ROW, passages, without_gold) == found


def test_confidence_that_comes_true_has_no_error() -> None:
    generator = np.random.default_rng(1)
    confidence = generator.random(20_000)
    right = generator.random(20_000) < confidence
    assert calibration_error(confidence, right) < 0.02
    assert calibration_error(np.sqrt(confidence), right) > 0.1


def test_a_threshold_has_its_precision_and_says_what_is_left() -> None:
    confidence = np.array([0.9, 0.8, 0.7, 0.6])
    right = np.array([True, True, False, True])
    assert least(confidence, right, 0.9) == {
        "precision": 0.9,
        "confidence": 0.8,
        "recall": 0.667,
        "answered": 0.5,
    }
    assert least(confidence, ~right, 0.9) is None
