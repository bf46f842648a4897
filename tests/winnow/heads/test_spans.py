"""Logits of tokens to spans: the best sequence of labels that BIO allows."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_heads import TOKEN_LABELS, head_fields

from winnow.domain.prediction import TokenSpan
from winnow.heads.manifest import FORMAT, HeadManifest
from winnow.heads.spans import best_path, decode_spans

OUT, B_PERSON, I_PERSON, B_PLACE, I_PLACE = range(5)


def manifest(**fields: object) -> HeadManifest:
    return HeadManifest.model_validate(
        {
            "format": FORMAT,
            "model": {"sha256": "0" * 64, "bytes": 1},
            **head_fields(kind="token", labels=TOKEN_LABELS, more=fields),
        }
    )


def logits(*labels: int, strength: float = 5.0) -> np.ndarray:
    """[CLS] and [SEP] say B-place, the tokens between them what is given."""
    return np.eye(5, dtype=np.float32)[[B_PLACE, *labels, B_PLACE]] * strength


def spans(*labels: int) -> list[tuple[str, int, int]]:
    found = decode_spans(logits(*labels), manifest()).spans
    return [(span.label, span.first, span.last) for span in found]


def test_a_span_goes_on_as_long_as_its_label_does() -> None:
    assert spans(OUT, B_PERSON, I_PERSON, I_PERSON, OUT) == [("person", 1, 4)]


def test_a_new_beginning_is_a_new_span() -> None:
    assert spans(B_PERSON, B_PERSON, I_PERSON, B_PLACE) == [
        ("person", 0, 1),
        ("person", 1, 3),
        ("place", 3, 4),
    ]


def test_a_text_without_entities_or_without_tokens_has_no_spans() -> None:
    assert spans(OUT, OUT) == []
    assert spans() == []


def test_the_special_tokens_count_for_nothing() -> None:
    assert spans(OUT) == []


def test_nothing_goes_on_that_has_not_begun() -> None:
    """I-person after O, at the beginning, or within a place, is made to begin or to change."""
    for labels in itertools.product(range(5), repeat=3):
        path = [TOKEN_LABELS[place] for place in best_path(logits(*labels)[1:-1], TOKEN_LABELS)]
        assert allowed(path)


def test_the_score_is_the_mean_probability_of_the_tokens() -> None:
    head = manifest(temperature=2.0)
    (span,) = decode_spans(logits(B_PERSON, I_PERSON, strength=4.0), head).spans
    one = np.exp(2) / (np.exp(2) + 4)
    assert span == TokenSpan("person", 0, 2, float(np.float32(one)))


def allowed(path: list[str]) -> bool:
    return all(
        not after.startswith("I-") or before[2:] == after[2:]
        for before, after in zip(["O", *path], path, strict=False)
    )


@given(
    st.lists(st.lists(st.integers(-8, 8), min_size=5, max_size=5), min_size=1, max_size=4).map(
        lambda rows: np.array(rows, np.float32)
    )
)
def test_the_path_is_the_best_of_all_that_are_allowed(values: np.ndarray) -> None:
    path = best_path(values, TOKEN_LABELS)
    assert allowed([TOKEN_LABELS[place] for place in path])

    def total(places: tuple[int, ...] | list[int]) -> float:
        return float(values[range(len(values)), list(places)].sum())

    best = max(
        total(places)
        for places in itertools.product(range(5), repeat=len(values))
        if allowed([TOKEN_LABELS[place] for place in places])
    )
    assert total(path) == best


@given(
    st.lists(
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=5, max_size=5
        ),
        min_size=2,
        max_size=12,
    ).map(lambda rows: np.array(rows, np.float32))
)
def test_all_finite_logits_give_spans_in_order_and_apart(values: np.ndarray) -> None:
    found = decode_spans(values, manifest()).spans
    end = 0
    for span in found:
        assert end <= span.first < span.last <= len(values) - 2
        assert 0 <= span.score <= 1
        end = span.last


@pytest.mark.parametrize("labels", [("O",), ("O", "B-x"), ("B-x", "I-x", "O")])
def test_labels_may_be_few_and_in_any_order(labels: tuple[str, ...]) -> None:
    path = best_path(np.eye(len(labels), dtype=np.float32), labels)
    assert allowed([labels[place] for place in path])
