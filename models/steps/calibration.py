"""Fits the weights of retrieval, score and early stopping on held-out training questions."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from models.assemble import ScoreWeights, amend_manifest
from models.measuring import stopping
from models.measuring.calibrate import (
    PASSAGES,
    Candidates,
    RankedPassage,
    best_passages,
    exact_match_by_passages,
    fit_score,
    read_candidates,
    sample_questions,
)
from models.measuring.confidence import fit_confidence
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import (
    NearestPassages,
    fit_word_weight,
    recall_by_passages,
    retrieve,
)
from models.measuring.stopping import FittedRule
from models.mining.embedding import Embedder
from models.mining.mine import TrainingQuestion
from models.mining.retrievers import read_retrieved
from models.steps.mining import load_held_out
from models.workspace import Workspace
from winnow.bundle import load_bundle

_COUNTS = (1, 2, 5, 10, 20)
"""Numbers of passages at which accuracy is reported."""
DEFAULT_PASSAGES = 10
"""Number of passages to read without early stopping."""
_MAX_QUESTIONS = {
    "squad": 500,
    "squad-tokenised": 500,
    "dpr-nq.dev": 500,
    "dpr-trivia.dev": 250,
    "webquestions-train": 250,
}
"""Maximum number of held-out questions of each source.

Other sources, such as reviews, are left out, because their passages are unlike Wikipedia articles.
"""

Report = Callable[[str], None]


def calibrate(workspace: Workspace, target: Path, seed: int, report: Report) -> ScoreWeights:
    """Fits all weights on held-out training questions and writes them into the bundle.

    Returns the weights of the score.
    """
    bundle = load_bundle(target)
    passages, held_out = load_held_out(workspace.mined_questions)
    questions = sample_questions(held_out, _MAX_QUESTIONS, seed)
    embedder = Embedder(bundle.passage_encoder, bundle.tokenizer, cache=workspace.vectors)
    tokenizer = Tokenizer.from_file(str(bundle.tokenizer))
    nearest = retrieve(questions, passages, embedder, tokenizer)
    word_weight = _fit_word_weight(nearest, questions, report)
    amend_manifest(target, retrieval={"words": word_weight})
    retrieved = best_passages(nearest, passages, word_weight)
    return _fit_reading(workspace, target, questions, retrieved, report)


def calibrate_on_retrieved(
    workspace: Workspace, target: Path, seed: int, report: Report
) -> ScoreWeights:
    """Fits the weights of score and early stopping on the passages that `mine-ranking` retrieved.

    Keeps the weight of matching words, because these passages were retrieved with it. Returns the
    weights of the score.
    """
    word_weight = load_bundle(target).manifest.retrieval.words
    passages = dict(read_retrieved(workspace.retrieved_passages))
    _, held_out = load_held_out(workspace.questions_with_negatives)
    questions = [each for each in held_out if len(passages.get(each.question, ())) >= PASSAGES]
    questions = sample_questions(questions, _MAX_QUESTIONS, seed)
    retrieved = [
        [
            RankedPassage(each.passage, each.distance, each.distance - word_weight * each.words)
            for each in passages[question.question][:PASSAGES]
        ]
        for question in questions
    ]
    return _fit_reading(workspace, target, questions, retrieved, report)


def _fit_reading(
    workspace: Workspace,
    target: Path,
    questions: Sequence[TrainingQuestion],
    retrieved: Sequence[Sequence[RankedPassage]],
    report: Report,
) -> ScoreWeights:
    bundle = load_bundle(target)
    reader = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    candidates = read_candidates(questions, retrieved, reader)
    np.savez_compressed(
        workspace.scored_answer_candidates,
        features=candidates.features,
        hybrid_distances=candidates.hybrid_distances,
        right=candidates.is_right,
        bearing=candidates.has_answer,
    )
    score = _fit_score(candidates, report)
    confidence = fit_confidence(candidates, score, DEFAULT_PASSAGES)
    rules = _fit_stopping(candidates, score, report)
    amend_manifest(
        target,
        score={**_rounded(asdict(score)), "confidence": _rounded(asdict(confidence))},
        stopping=[{"max_loss": each.max_loss, **_rounded(asdict(each.rule))} for each in rules],
    )
    return score


def _fit_word_weight(
    nearest: NearestPassages, questions: Sequence[TrainingQuestion], report: Report
) -> float:
    is_right = nearest.indices == np.array([each.positive for each in questions])[:, None]
    fitted = round(fit_word_weight(nearest, is_right), 5)
    for weight in (0.0, fitted):
        curve = recall_by_passages(nearest, is_right, weight, _COUNTS)
        report(f"word weight {weight:g}: recall in percent by passages {_curve(curve)}")
    return fitted


def _fit_score(candidates: Candidates, report: Report) -> ScoreWeights:
    score = fit_score(candidates)
    for name, weights in (("relevance alone", ScoreWeights(1, 0, 0)), ("fitted", score)):
        curve = exact_match_by_passages(candidates, weights, _COUNTS)
        report(f"{name}: exact match by passages {_curve(curve)}")
    return score


def _fit_stopping(candidates: Candidates, score: ScoreWeights, report: Report) -> list[FittedRule]:
    rules = stopping.fit_stopping_rules(candidates, score, DEFAULT_PASSAGES)
    for each in rules:
        report(
            f"early stopping: reads {each.read:.1f} of {DEFAULT_PASSAGES} passages, "
            f"loses {each.lost:.2f} points of exact match, at most {each.expected:.2f} expected "
            f"(promised {each.max_loss:g})"
        )
    return rules


def _curve(values: Sequence[float]) -> str:
    return f"{_COUNTS}: {[round(value, 1) for value in values]}"


def _rounded(values: dict[str, Any]) -> dict[str, float]:
    return {name: round(value, 5) + 0.0 for name, value in values.items()}  # + 0.0: no minus zero
