"""The score of a passage by late interaction is that of the definition, and has the same bits
whichever passages are scored with it.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from winnow.content_node.late_interaction import similarity
from winnow.content_node.late_interaction.similarity import PassageVectors, late_scores
from winnow.domain.question import QuestionTokens
from winnow.late_interaction.levels import (
    MAX_VALUES,
    PASSAGE_LEVELS,
    quantise_passage,
    quantise_question,
    question_levels,
)

LENGTHS = (5, 1, 130, 3, 256, 40, 12)


def vectors(count: int, values: int, seed: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal((count, values)).astype(np.float32)
    normed: NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return normed


def some_passages(values: int) -> list[NDArray[np.float32]]:
    return [vectors(length, values, seed) for seed, length in enumerate(LENGTHS)]


def stored(passages: list[NDArray[np.float32]]) -> PassageVectors:
    levels = np.concatenate([quantise_passage(each) for each in passages])
    return PassageVectors(levels, np.array([len(each) for each in passages]))


def asked(values: int) -> tuple[NDArray[np.float32], QuestionTokens]:
    tokens = vectors(9, values, 100)
    weights = np.linspace(0, 3, 9, dtype=np.float32)
    return tokens, QuestionTokens(quantise_question(tokens), weights)


def test_the_score_is_the_weighted_sum_of_the_largest_similarities() -> None:
    tokens, question = asked(32)
    expected = [(question.weights * (tokens @ each.T).max(1)).sum() for each in some_passages(32)]
    assert late_scores(question, stored(some_passages(32))) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("values", [1, 8, 32, MAX_VALUES])
def test_a_score_has_the_same_bits_in_any_company(
    values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, question = asked(values)
    passages = some_passages(values)
    alone = [late_scores(question, stored([each]))[0] for each in passages]
    assert late_scores(question, stored(passages)).tolist() == alone
    assert late_scores(question, stored(passages[::-1])).tolist() == alone[::-1]
    monkeypatch.setattr(similarity, "_CHUNK_TOKENS", 140)
    monkeypatch.setattr(similarity, "_SINGLE_THREAD", 2**12)
    assert late_scores(question, stored(passages)).tolist() == alone


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_similar_to_no_token(value: float) -> None:
    vectors = np.eye(3, 8, dtype=np.float32)
    vectors[1, 5] = value
    levels = quantise_passage(vectors)
    assert levels.dtype == np.int8
    assert np.array_equal(
        levels, [*quantise_passage(np.eye(1, 8, dtype=np.float32)), [0] * 8, levels[2]]
    )
    assert levels[2].max() == 127


def test_nothing_to_score_has_no_scores() -> None:
    _, question = asked(8)
    nothing = PassageVectors(np.zeros((0, 8), np.int8), np.zeros(0, np.int64))
    assert late_scores(question, nothing).tolist() == []


@pytest.mark.parametrize("values", [1, 8, 32, MAX_VALUES])
def test_inner_products_of_levels_are_exact_in_single_precision(values: int) -> None:
    largest = question_levels(values) * PASSAGE_LEVELS * values
    assert int(np.float32(largest)) == largest < 2**24
