"""What retrieval, score and stopping weigh, fitted on held-out training questions."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from models.assemble import Score, amend
from models.data import Passage
from models.measuring import stopping
from models.measuring.calibrate import (
    PASSAGES,
    Candidates,
    Retrieved,
    best_of,
    candidates,
    exact_match_by_passages,
    fit,
    sample,
)
from models.measuring.confidence import fit_confidence
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import NearestPassages, fit_words, recall_by_passages, retrieve
from models.measuring.stopping import FittedRule
from models.mining.embedding import Embedder
from models.mining.mine import TrainingQuestion
from models.mining.retrievers import found_before
from models.steps.mining import load_held_out
from models.workspace import Workspace
from winnow.bundle import Bundle, load_bundle

STEPS = (1, 2, 5, 10, 20)
DEFAULT_PASSAGES = 10
"""Passages that are read without early stopping."""
CALIBRATION = {
    "squad": 500,
    "squad-tokenised": 500,
    "dpr-nq.dev": 500,
    "dpr-trivia.dev": 250,
    "webquestions-train": 250,
}
"""Most held-out questions of each source; reviews are not what an index of articles holds."""

Say = Callable[[str], None]


def calibrate(work: Workspace, target: Path, seed: int, say: Say) -> Score:
    """Fits the weights of retrieval, score and stopping on held-out training questions, and writes
    them into the bundle.
    """
    bundle = load_bundle(target)
    passages, held_out = load_held_out(work.mined)
    asked = sample(held_out, CALIBRATION, seed)
    near = _retrieve(asked, passages, bundle, work)
    word_weight = _fit_words(near, asked, say)
    amend(target, retrieval={"words": word_weight})
    return _fit_reading(work, target, asked, best_of(near, passages, word_weight), say)


def calibrate_on_found(work: Workspace, target: Path, seed: int, say: Say) -> Score:
    """Returns the same on what `mine-ranking` found for them; retrieval stays what it was found
    with.
    """
    words = load_bundle(target).manifest.retrieval.words
    found = dict(found_before(work.found))
    _, held_out = load_held_out(work.ranked)
    asked = [each for each in held_out if len(found.get(each.question, ())) >= PASSAGES]
    asked = sample(asked, CALIBRATION, seed)
    retrieved = [
        [
            Retrieved(each.passage, each.distance, each.distance - words * each.words)
            for each in found[question.question][:PASSAGES]
        ]
        for question in asked
    ]
    return _fit_reading(work, target, asked, retrieved, say)


def _fit_reading(
    work: Workspace,
    target: Path,
    asked: Sequence[TrainingQuestion],
    retrieved: Sequence[Sequence[Retrieved]],
    say: Say,
) -> Score:
    bundle = load_bundle(target)
    reader = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    found = candidates(asked, retrieved, reader)
    np.savez_compressed(work.candidates, **asdict(found))
    score = _fit_score(found, say)
    confidence = fit_confidence(found, score, DEFAULT_PASSAGES)
    rules = _fit_stopping(found, score, say)
    amend(
        target,
        score={**_rounded(asdict(score)), "confidence": _rounded(asdict(confidence))},
        stopping=[{"max_loss": each.max_loss, **_rounded(asdict(each.rule))} for each in rules],
    )
    return score


def _retrieve(
    asked: Sequence[TrainingQuestion], passages: Sequence[Passage], bundle: Bundle, work: Workspace
) -> NearestPassages:
    embedder = Embedder(bundle.passage_encoder, bundle.tokenizer, cache=work.vectors)
    return retrieve(asked, passages, embedder, Tokenizer.from_file(str(bundle.tokenizer)))


def _fit_words(near: NearestPassages, asked: Sequence[TrainingQuestion], say: Say) -> float:
    right = near.places == np.array([question.positive for question in asked])[:, None]
    fitted = round(fit_words(near, right), 5)
    for weight in (0.0, fitted):
        curve = recall_by_passages(near, right, weight, STEPS)
        say(f"words worth {weight:g}: recall by passages {_curve(curve)}")
    return fitted


def _fit_score(found: Candidates, say: Say) -> Score:
    score = fit(found)
    for name, weights in (("relevance alone", Score(1, 0, 0)), ("fitted", score)):
        curve = exact_match_by_passages(found, weights, STEPS)
        say(f"{name}: exact match by passages {_curve(curve)}")
    return score


def _fit_stopping(found: Candidates, score: Score, say: Say) -> list[FittedRule]:
    rules = stopping.calibrate(found, score, DEFAULT_PASSAGES)
    for each in rules:
        say(
            f"reading may stop early: {each.read:.1f} of {DEFAULT_PASSAGES} passages, "
            f"{each.lost:.2f} exact match lost, at most {each.expected:.2f} expected "
            f"(promised {each.max_loss:g})"
        )
    return rules


def _curve(values: Sequence[float]) -> str:
    return f"{STEPS}: {[round(value, 1) for value in values]}"


def _rounded(values: dict[str, Any]) -> dict[str, float]:
    return {name: round(value, 5) + 0.0 for name, value in values.items()}  # no minus zero
