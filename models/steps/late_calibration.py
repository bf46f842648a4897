"""Fits the ranking by late interaction, and what depends on it, on held-out training questions.

The weights of an index without token vectors stay as they are.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.assemble import ScoreWeights, amend_weights
from models.measuring.calibrate import PASSAGES
from models.measuring.judging import JudgedQuestion
from models.measuring.late_ranking import LateCandidates, LateWeights, fit_late_weights
from models.measuring.retrieved import check_retrieved
from models.measuring.retrieving import find_candidates
from models.measuring.token_scores import TokenScores
from models.mining.retrievers import CANDIDATES, ScoredPassage
from models.steps.calibration import (
    WIKIPEDIA,
    Calibration,
    RetrievedPassages,
    judged_questions,
    read_passages,
    retrieve_from,
)
from models.steps.reading_fit import (
    COUNTS,
    DEFAULT_PASSAGES,
    Report,
    curve_text,
    fit_reading,
)
from winnow.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE

_DEPTHS = (10, 20, 30, 50, 100, 200)
"""Numbers of nearest candidates, and of best candidates by words, at which recall is reported."""


def calibrate_late_interaction(
    calibration: Calibration,
    seed: int,
    candidates: int = CANDIDATES,
    *,
    keep_confidences: bool = False,
) -> ScoreWeights:
    """Fits all weights for passages that are ranked by late interaction.

    `keep_confidences`: both confidences and their minimum stay those of an earlier calibration.
    Writes them into the bundle, which must have late interaction. Returns the weights of the score.
    Computes the token vectors of the `candidates` nearest passages of each question, and of as many
    best passages by words.

    Raises:
        DataError: weights cannot be fitted to the passages of a kind of text.

    """
    bundle = load_bundle(calibration.bundle)
    scores = TokenScores(bundle, calibration.workspace.vectors)
    found = {WIKIPEDIA: _wikipedia(calibration, bundle, seed)}
    for collection in calibration.collections:
        found[collection.name] = _candidates_of(collection, bundle)
    for kind, each in found.items():
        check_retrieved(kind, each.questions, each.candidates, PASSAGES)
        _report_depths(kind, each, calibration.report)
    scored = {kind: _score(each, scores, candidates) for kind, each in found.items()}
    weights = fit_late_weights(list(scored.values()))
    kinds = {}
    for kind, each in found.items():
        answered = np.array([bool(question.answers) for question in each.questions])
        _report_recall(kind, scored[kind], answered, weights, calibration.report)
        best = scored[kind].best(weights, PASSAGES)
        kinds[kind] = RetrievedPassages(each.questions, best)
    read = read_passages(calibration, kinds, late_interaction=True)
    shares = [1.0] * len(read)
    fit = fit_reading(read, shares, calibration.report, score_passages=DEFAULT_PASSAGES)
    manifest = json.loads((calibration.bundle / FILE).read_text(encoding="utf-8"))
    before = manifest["late_interaction"]
    fitted = {
        **before,
        **asdict(weights),
        "score": fit.score_entry(before["score"] if keep_confidences else None),
        "stopping": fit.stopping_entries(),
    }
    amend_weights(calibration.bundle, late_interaction=fitted)
    return fit.score


@dataclass(frozen=True, slots=True)
class _Found:
    """Questions about a kind of text, with the candidates of each."""

    questions: Sequence[JudgedQuestion]
    candidates: Sequence[Sequence[ScoredPassage]]
    is_right: Sequence[Sequence[bool]]
    """Whether each candidate has the answer."""


def _wikipedia(calibration: Calibration, bundle: Bundle, seed: int) -> _Found:
    passages, questions = calibration.held_out(seed)
    tokenizer, embedder = Tokenizer.from_file(str(bundle.tokenizer)), calibration.embedder(bundle)
    texts = [each.question for each in questions]
    found = find_candidates(texts, passages, embedder, tokenizer, max(_DEPTHS))
    is_right = [
        [candidate.passage == passages[question.positive] for candidate in row]
        for question, row in zip(questions, found, strict=True)
    ]
    return _Found(judged_questions(questions), found, is_right)


def _candidates_of(collection: Path, bundle: Bundle) -> _Found:
    questions, found = retrieve_from(collection, bundle, 2 * CANDIDATES)
    is_right = [
        [question.accepts_passage(candidate.passage) for candidate in row]
        for question, row in zip(questions, found, strict=True)
    ]
    return _Found(questions, found, is_right)


def _score(found: _Found, scores: TokenScores, depth: int) -> LateCandidates:
    """Scores the candidates within `depth` by late interaction."""
    kept = [sorted(_within(row, depth)) for row in found.candidates]
    candidates = [[row[n] for n in own] for row, own in zip(found.candidates, kept, strict=True)]
    is_right = [[row[n] for n in own] for row, own in zip(found.is_right, kept, strict=True)]
    texts = [question.text for question in found.questions]
    return LateCandidates.of(texts, candidates, is_right, scores)


def _within(row: Sequence[ScoredPassage], depth: int) -> set[int]:
    """Returns the numbers of the `depth` nearest candidates and of the `depth` best by words."""
    near = sorted(range(len(row)), key=lambda number: row[number].distance)
    best = sorted(range(len(row)), key=lambda number: -row[number].words)
    return {*near[:depth], *best[:depth]}


def _report_depths(kind: str, found: _Found, report: Report) -> None:
    shares = []
    for depth in _DEPTHS:
        right = [
            any(is_right[number] for number in _within(row, depth))
            for question, row, is_right in zip(
                found.questions, found.candidates, found.is_right, strict=True
            )
            if question.answers
        ]
        shares.append(round(100 * sum(right) / len(right), 1))
    report(f"{kind}: a right passage is among {_DEPTHS} candidates of each kind for {shares} %")


def _report_recall(
    kind: str,
    candidates: LateCandidates,
    answered: NDArray[np.bool_],
    weights: LateWeights,
    report: Report,
) -> None:
    for each in (LateWeights(weights.words, 0.0), weights):
        curve = curve_text(candidates.recall_by_passages(each, COUNTS, answered))
        report(
            f"{kind}, words {each.words:g}, late interaction {each.tokens:g}: recall in percent by "
            f"passages {curve}"
        )
