"""How likely an answer is right."""

import json
import math
from dataclasses import replace
from pathlib import Path

from fakes import reading
from hypothesis import given
from hypothesis import strategies as st

from winnow.bundle import read_manifest
from winnow.bundle.manifest import FILE
from winnow.domain.confidence import Confidence
from winnow.files.checksummed_json import to_checksummed_json
from winnow.packaged import default_bundle

FITTED = Confidence(relevance=0.5, span=0.3, distance=-1.0, bias=-2.0)
figures = st.floats(width=32)


@given(figures, figures, figures)
def test_it_is_a_probability_for_all_figures(
    relevance: float, span: float, distance: float
) -> None:
    said = replace(reading("p"), relevance=relevance, span_score=span, distance=distance)
    assert 0 <= FITTED.of(said) <= 1


@given(st.floats(-50, 50), st.floats(0.01, 5))
def test_a_more_relevant_passage_never_makes_an_answer_less_likely(
    relevance: float, more: float
) -> None:
    said = replace(reading("p"), relevance=relevance)
    assert FITTED.of(said) <= FITTED.of(replace(said, relevance=relevance + more))


def test_it_is_the_logistic_function() -> None:
    said = replace(reading("p"), relevance=3.0, span_score=4.0, distance=0.5)
    odds = 0.5 * 3 + 0.3 * 4 - 0.5 - 2
    assert math.isclose(FITTED.of(said), 1 / (1 + math.exp(-odds)))


def test_where_there_is_no_span_nothing_is_likely() -> None:
    said = reading("p")
    assert FITTED.of(replace(said, end=said.start)) == 0


def made(directory: Path, confidence: dict[str, float] | None) -> Path:
    content = json.loads((default_bundle() / FILE).read_text())
    for name in ("confidence", "sentence_confidence"):
        content["score"].pop(name, None)
    if confidence is not None:
        content["score"]["confidence"] = confidence
    directory.mkdir()
    (directory / FILE).write_text(to_checksummed_json(content))
    return directory


def test_a_bundle_says_how_and_is_another_one_by_it(tmp_path: Path) -> None:
    weights = {"relevance": 0.5, "span": 0.3, "distance": -1.0, "bias": -2.0}
    without = read_manifest(made(tmp_path / "without", None))
    fitted = read_manifest(made(tmp_path / "fitted", weights))
    assert (without.confidence, fitted.confidence) == (None, FITTED)
    assert without.fingerprint != fitted.fingerprint
    assert without.encoding_fingerprint == fitted.encoding_fingerprint


def test_a_bundle_may_have_a_confidence_of_sentences(tmp_path: Path) -> None:
    weights = {"relevance": 0.5, "span": 0.3, "distance": -1.0, "bias": -2.0}
    directory = made(tmp_path / "both", weights)
    content = json.loads((directory / FILE).read_text())
    assert read_manifest(directory).answer_calibration().sentence_confidence is None
    content["score"]["sentence_confidence"] = weights
    (directory / FILE).write_text(to_checksummed_json(content))
    assert read_manifest(directory).answer_calibration().sentence_confidence == FITTED
