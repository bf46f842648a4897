"""Logits of a text to labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_heads import head_fields

from winnow.heads.labels import MAX_RETURNED_LABELS, decode_labels, softmax
from winnow.heads.manifest import FORMAT, HeadManifest


def manifest(labels: int, **fields: object) -> HeadManifest:
    """A head with labels called by their numbers."""
    return HeadManifest.model_validate(
        {
            "format": FORMAT,
            "model": {"sha256": "0" * 64, "bytes": 1},
            **head_fields(labels=[str(number) for number in range(labels)], more=fields),
        }
    )


def logits(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_the_best_label_is_assigned_and_scores_add_up_to_one() -> None:
    found = decode_labels(logits(1, 3, 2), manifest(3))
    assert [each.label for each in found.labels] == ["1", "2", "0"]
    assert [each.assigned for each in found.labels] == [True, False, False]
    assert sum(each.score for each in found.labels) == pytest.approx(1)
    assert found.out_of_scope is None


def test_below_the_threshold_a_text_is_out_of_scope() -> None:
    head = manifest(2, threshold=0.9)
    sure, unsure = decode_labels(logits(9, 0), head), decode_labels(logits(1, 0), head)
    assert (sure.out_of_scope, sure.labels[0].assigned) == (False, True)
    assert (unsure.out_of_scope, unsure.labels[0].assigned) == (True, False)


def test_a_score_at_the_threshold_is_in_scope() -> None:
    found = decode_labels(logits(1, 1), manifest(2, threshold=0.5))
    assert found.out_of_scope is False


def test_the_temperature_makes_scores_milder_and_keeps_their_order() -> None:
    cold, warm = (
        decode_labels(logits(2, 0), manifest(2, temperature=t)).labels[0].score for t in (1, 4)
    )
    assert cold > warm > 0.5
    assert warm == pytest.approx(1 / (1 + np.exp(-0.5)))


def test_a_text_may_have_several_labels_or_none() -> None:
    head = manifest(3, multi_label=True, threshold=0.4)
    several = decode_labels(logits(3, -3, 2), head)
    assert [(each.label, each.assigned) for each in several.labels] == [
        ("0", True),
        ("2", True),
        ("1", False),
    ]
    assert several.out_of_scope is False
    assert decode_labels(logits(-3, -3, -3), head).out_of_scope is True


def test_without_a_threshold_labels_from_one_half_on_are_assigned() -> None:
    found = decode_labels(logits(0.1, -0.1), manifest(2, multi_label=True))
    assert [each.assigned for each in found.labels] == [True, False]
    assert found.out_of_scope is None


def test_equally_good_labels_come_in_their_order() -> None:
    found = decode_labels(np.zeros(5, np.float32), manifest(5))
    assert [each.label for each in found.labels] == list("01234")


def test_only_the_best_labels_are_returned() -> None:
    found = decode_labels(np.arange(500, dtype=np.float32), manifest(500))
    assert [each.label for each in found.labels] == [
        str(499 - rank) for rank in range(MAX_RETURNED_LABELS)
    ]


def test_a_label_for_texts_of_no_class_is_a_label_like_the_others() -> None:
    head = manifest(2).model_copy(update={"labels": ("weather", "oos")})
    found = decode_labels(logits(0, 9), head)
    assert (found.labels[0].label, found.labels[0].assigned) == ("oos", True)
    assert found.out_of_scope is None


def test_scores_are_as_messages_carry_them() -> None:
    for each in decode_labels(logits(0.3, 0.1, 0.7), manifest(3)).labels:
        assert each.score == float(np.float32(each.score))


finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(
    st.lists(finite, min_size=1, max_size=30),
    st.floats(1e-6, 1e6),
    st.none() | st.floats(0, 1),
    st.booleans(),
)
def test_all_finite_logits_give_scores_from_0_to_1_best_first(
    values: list[float], temperature: float, threshold: float | None, several: bool
) -> None:
    head = manifest(len(values), temperature=temperature, threshold=threshold, multi_label=several)
    found = decode_labels(logits(*values), head)
    scores = [each.score for each in found.labels]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assigned = [each for each in found.labels if each.assigned]
    assert several or len(assigned) <= 1
    if threshold is not None:
        assert found.out_of_scope is not bool(assigned)


@given(st.lists(st.lists(finite, min_size=3, max_size=3), min_size=1, max_size=5))
def test_each_row_adds_up_to_one(rows: list[list[float]]) -> None:
    assert np.allclose(softmax(np.array(rows, np.float32), 1.0).sum(axis=-1), 1)
