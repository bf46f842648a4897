"""Tests of the steps of calibration, with scores in place of the models."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from whole_bundle import WHOLE

from models.assemble import amend_weights
from models.data import DataError, Passage
from models.measuring.calibrate import PASSAGES, Candidates
from models.measuring.judging import JudgedQuestion
from models.measuring.retrieving import NearestPassages
from models.mining.mine import TrainingQuestion
from models.mining.retrievers import ScoredPassage
from models.steps import calibration, late_calibration
from models.workspace import Workspace
from winnow.bundle import read_manifest

QUESTIONS = 40
TEXTS = [Passage("", f"Number {number} did.") for number in range(QUESTIONS)]
ASKED = [
    TrainingQuestion(
        question=f"Who was {number}?",
        answer=str(number),
        answer_start=7,
        source="squad",
        positive=number,
        negatives=(),
    )
    for number in range(QUESTIONS)
]


class ReadingStartedError(Exception):
    """The step went on to reading these passages."""

    def __init__(self, kinds: Mapping[str, calibration.RetrievedPassages]) -> None:
        super().__init__()
        self.kinds = kinds


def stop_at_reading(
    _: calibration.Calibration, kinds: Mapping[str, calibration.RetrievedPassages], **__: object
) -> dict[str, Candidates]:
    raise ReadingStartedError(kinds)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Wikipedia has `TEXTS`, of which the right one is nearest, and reading raises `ReadingStartedError`."""

    def nearest(*_: object) -> NearestPassages:
        right: NDArray[np.int64] = np.arange(QUESTIONS)[:, None]
        indices = (right + np.arange(QUESTIONS - 1)) % QUESTIONS
        distances = np.random.default_rng(1).random(indices.shape)
        words = np.random.default_rng(2).random(indices.shape)
        distances[:, 0] -= 0.5
        words[:, 0] += 0.5
        return NearestPassages(indices, distances, words)

    monkeypatch.setattr(calibration.Calibration, "embedder", lambda *_: None)
    monkeypatch.setattr(calibration, "load_held_out", lambda _: (TEXTS, ASKED))
    monkeypatch.setattr(calibration, "retrieve", nearest)
    monkeypatch.setattr(calibration, "read_passages", stop_at_reading)
    return monkeypatch


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WHOLE, tmp_path / "bundle"))


def ignore(_: str) -> None:
    """Takes a line of the report."""


def test_a_calibration_that_fails_changes_nothing(
    steps: pytest.MonkeyPatch, bundle: Path, tmp_path: Path
) -> None:
    """Not even the weight of matching words, with which it retrieved."""
    before = (bundle / "bundle.json").read_bytes()
    with pytest.raises(ReadingStartedError) as stopped:
        calibration.calibrate(calibration.Calibration(Workspace(tmp_path), bundle, ignore), 1)
    assert {len(row) for row in stopped.value.kinds["Wikipedia"].passages} == {PASSAGES}
    assert (bundle / "bundle.json").read_bytes() == before


def test_new_weights_are_written_together_and_without_the_accuracy_of_earlier_ones(
    steps: pytest.MonkeyPatch, bundle: Path, tmp_path: Path
) -> None:
    def read(
        _: object, kinds: Mapping[str, calibration.RetrievedPassages]
    ) -> dict[str, Candidates]:
        right = np.tile(np.arange(PASSAGES) == 0, (QUESTIONS, 1))
        noise = np.random.default_rng(1).normal(size=(QUESTIONS, PASSAGES, 4))
        scores: dict[str, Any] = {
            "features": noise + right[..., None],
            "hybrid_distances": noise[..., 2].copy(),
            "word_shares": abs(noise[..., 3]),
            "is_answerable": np.ones(QUESTIONS, np.bool_),
        }
        rights = dict.fromkeys(("is_right", "has_answer", "is_right_sentence"), right)
        return {kind: Candidates(**scores, **rights) for kind in kinds}

    steps.setattr(calibration, "read_passages", read)
    before = read_manifest(bundle)
    calibration.calibrate(calibration.Calibration(Workspace(tmp_path), bundle, ignore), 1)
    after = read_manifest(bundle)
    assert after.retrieval.words != before.retrieval.words
    assert after.score != before.score
    assert {"passages_read", "index"} < set(before.accuracy)
    assert set(after.accuracy) == set(before.accuracy) - {"passages_read", "index"}


def test_weights_that_are_not_numbers_are_not_written(bundle: Path) -> None:
    before = (bundle / "bundle.json").read_bytes()
    score = json.loads(before)["score"]
    with pytest.raises(DataError, match=r"was not written: score\.span"):
        amend_weights(bundle, score={**score, "span": float("nan")})
    assert (bundle / "bundle.json").read_bytes() == before


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_share_of_the_questions_of_mine_ranking_is_read(
    steps: pytest.MonkeyPatch, bundle: Path, tmp_path: Path, share: float
) -> None:
    row = [ScoredPassage(text, 0.5, 1.0) for text in TEXTS]
    steps.setattr(calibration, "read_retrieved", lambda *_: {q.question: row for q in ASKED})
    chosen = calibration.Calibration(Workspace(tmp_path), bundle, ignore, share=share)
    with pytest.raises(ReadingStartedError) as stopped:
        calibration.calibrate_on_retrieved(chosen, 1)
    assert len(stopped.value.kinds["Wikipedia"].questions) == share * QUESTIONS


class Tokens:
    """Scores no passage above another by late interaction."""

    def __init__(self, *_: object) -> None:
        """No models are opened."""

    def prepare(self, _: object) -> None:
        """No token vectors are computed."""

    def scores(self, _: str, passages: list[Passage]) -> NDArray[np.float64]:
        return np.zeros(len(passages))


def late(
    steps: pytest.MonkeyPatch, bundle: Path, answers: tuple[str, ...], passages: int
) -> Mapping[str, calibration.RetrievedPassages]:
    """Calibrates late interaction with two questions about manuals; returns what would be read."""
    row = [ScoredPassage(text, 0.5 + n / 100, float(n == 3)) for n, text in enumerate(TEXTS)]
    asked = [JudgedQuestion(text="Who?", answers=answers)] * 2
    found = [row[:passages]] * 2
    wikipedia = late_calibration._Found(
        [JudgedQuestion(text="Who?", answers=("3",))], [row], [[n == 3 for n in range(len(row))]]
    )
    steps.setattr(late_calibration, "TokenScores", Tokens)
    steps.setattr(late_calibration, "_wikipedia", lambda *_: wikipedia)
    steps.setattr(late_calibration, "retrieve_from", lambda *_: (asked, found))
    steps.setattr(late_calibration, "read_passages", stop_at_reading)
    chosen = calibration.Calibration(
        Workspace(bundle), bundle, ignore, collections=[Path("manuals")]
    )
    with pytest.raises(ReadingStartedError) as stopped:
        late_calibration.calibrate_late_interaction(chosen, 1)
    return stopped.value.kinds


def test_late_interaction_reads_passages_in_the_place_of_those_with_the_answer(
    steps: pytest.MonkeyPatch, bundle: Path
) -> None:
    kinds = late(steps, bundle, ("3",), PASSAGES)
    lengths = {kind: {len(row) for row in each.passages} for kind, each in kinds.items()}
    assert lengths == {"Wikipedia": {PASSAGES}, "manuals": {PASSAGES}}


@pytest.mark.parametrize(
    ("answers", "passages", "message"),
    [
        ((), PASSAGES, "manuals: no retrieved passage has an answer to any of 2 questions"),
        (("3",), 19, "manuals: a question has 19 retrieved passages, and 20 are needed"),
    ],
)
def test_late_interaction_is_not_fitted_to_too_little(
    steps: pytest.MonkeyPatch, bundle: Path, answers: tuple[str, ...], passages: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        late(steps, bundle, answers, passages)
