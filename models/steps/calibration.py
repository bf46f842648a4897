"""Fits the weights of retrieval, score and early stopping on held-out training questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from models.assemble import ScoreWeights, amend_manifest
from models.measuring.calibrate import (
    PASSAGES,
    Candidates,
    RankedPassage,
    best_passages,
    exact_match_by_passages,
    fit_score,
    join,
    read_candidates,
    sample_questions,
)
from models.measuring.collection import index_of, read_collection
from models.measuring.confidence import (
    SHARE,
    AnswerPart,
    BestAnswers,
    fit_confidence,
    fit_min_confidence,
)
from models.measuring.early_stopping import FittedRule, fit_stopping_rules
from models.measuring.judging import JudgedQuestion
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import (
    NearestPassages,
    fit_word_weight,
    recall_by_passages,
    retrieve,
)
from models.mining.embedding import Embedder
from models.mining.mine import TrainingQuestion
from models.mining.retrievers import ScoredPassage, ServedRetriever, read_retrieved
from models.steps.mining import load_held_out
from models.workspace import Workspace
from winnow.bundle import Bundle, load_bundle

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


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is calibrated, and on what."""

    workspace: Workspace
    bundle: Path
    """Directory of the bundle whose weights are fitted and replaced."""
    report: Report
    """Gets lines about the fit."""
    documents: Path | None = None
    """Collection of documents with questions (`models.measuring.collection`)."""


def calibrate(calibration: Calibration, seed: int) -> ScoreWeights:
    """Fits all weights on held-out questions and writes them into the bundle.

    Returns the weights of the score.
    """
    workspace, target, report = calibration.workspace, calibration.bundle, calibration.report
    bundle = load_bundle(target)
    passages, held_out = load_held_out(workspace.mined_questions)
    questions = sample_questions(held_out, _MAX_QUESTIONS, seed)
    embedder = Embedder(bundle.passage_encoder, bundle.tokenizer, cache=workspace.vectors)
    tokenizer = Tokenizer.from_file(str(bundle.tokenizer))
    nearest = retrieve(questions, passages, embedder, tokenizer)
    word_weight = _fit_word_weight(nearest, questions, report)
    amend_manifest(target, retrieval={"words": word_weight})
    retrieved = best_passages(nearest, passages, word_weight)
    return _fit_reading(calibration, questions, retrieved, share=1.0)


def calibrate_on_retrieved(calibration: Calibration, seed: int) -> ScoreWeights:
    """Fits the weights of score and early stopping on the passages that `mine-ranking` retrieved.

    Keeps the weight of matching words, because these passages were retrieved with it. Returns the
    weights of the score.
    """
    workspace = calibration.workspace
    word_weight = load_bundle(calibration.bundle).manifest.retrieval.words
    passages = dict(read_retrieved(workspace.retrieved_passages))
    _, held_out = load_held_out(workspace.questions_with_negatives)
    questions = [each for each in held_out if len(passages.get(each.question, ())) >= PASSAGES]
    questions = sample_questions(questions, _MAX_QUESTIONS, seed)
    retrieved = [
        [_ranked_passage(each, word_weight) for each in passages[question.question][:PASSAGES]]
        for question in questions
    ]
    return _fit_reading(calibration, questions, retrieved, SHARE)


def _fit_reading(
    calibration: Calibration,
    questions: Sequence[TrainingQuestion],
    retrieved: Sequence[Sequence[RankedPassage]],
    share: float,
) -> ScoreWeights:
    """Fits score, confidences and early stopping.

    `share` is the share of the retrieved passages without an answer that confidences are fitted on.
    """
    bundle, report = load_bundle(calibration.bundle), calibration.report
    reader = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    judged = [JudgedQuestion(text=each.question, answers=each.answers) for each in questions]
    kinds = {"Wikipedia": read_candidates(judged, retrieved, reader)}
    shares = [share]
    if calibration.documents is not None:
        kinds["documents"] = _read_documents(calibration.documents, bundle, reader)
        shares.append(1.0)
    for name, candidates in kinds.items():
        path = calibration.workspace.scored_answer_candidates(name)
        np.savez_compressed(path, **candidates.arrays())
    score = _fit_score(kinds, report)
    confidences = {
        part: fit_confidence(
            [
                BestAnswers.of(candidates, score, part, DEFAULT_PASSAGES, share)
                for candidates, share in zip(kinds.values(), shares, strict=True)
            ]
        )
        for part in AnswerPart
    }
    least = fit_min_confidence(
        list(kinds.values()), score, confidences[AnswerPart.SPAN], DEFAULT_PASSAGES
    )
    rules = _fit_stopping(kinds, score, report)
    amend_manifest(
        calibration.bundle,
        score={
            **_rounded(asdict(score)),
            "min_confidence": round(least, 5),
            "confidence": _rounded(asdict(confidences[AnswerPart.SPAN])),
            "sentence_confidence": _rounded(asdict(confidences[AnswerPart.SENTENCE])),
        },
        stopping=[{"max_loss": each.max_loss, **_rounded(asdict(each.rule))} for each in rules],
    )
    return score


def _read_documents(collection: Path, bundle: Bundle, reader: OfflineReader) -> Candidates:
    """Retrieves and reads the passages of a collection."""
    questions = read_collection(collection)
    retriever = ServedRetriever(index_of(collection), bundle)
    texts = [question.text for question in questions]
    vectors = Embedder(bundle.question_encoder, bundle.tokenizer).questions(texts)
    word_weight = bundle.manifest.retrieval.words
    retrieved = [
        [_ranked_passage(each, word_weight) for each in retriever.find(text, vector, PASSAGES)]
        for text, vector in zip(texts, vectors, strict=True)
    ]
    return read_candidates(questions, retrieved, reader)


def _ranked_passage(scored: ScoredPassage, word_weight: float) -> RankedPassage:
    hybrid_distance = scored.distance - word_weight * scored.words
    return RankedPassage(scored.passage, scored.distance, hybrid_distance, scored.words)


def _fit_word_weight(
    nearest: NearestPassages, questions: Sequence[TrainingQuestion], report: Report
) -> float:
    is_right = nearest.indices == np.array([each.positive for each in questions])[:, None]
    fitted = round(fit_word_weight(nearest, is_right), 5)
    for weight in (0.0, fitted):
        curve = recall_by_passages(nearest, is_right, weight, _COUNTS)
        report(f"word weight {weight:g}: recall in percent by passages {_curve(curve)}")
    return fitted


def _fit_score(kinds: Mapping[str, Candidates], report: Report) -> ScoreWeights:
    score = fit_score(list(kinds.values()))
    for kind, candidates in kinds.items():
        for name, weights in (("relevance alone", ScoreWeights(1, 0, 0)), ("fitted", score)):
            curve = exact_match_by_passages(candidates, weights, _COUNTS)
            report(f"{kind}, {name}: exact match by passages {_curve(curve)}")
    return score


def _fit_stopping(
    kinds: Mapping[str, Candidates], score: ScoreWeights, report: Report
) -> list[FittedRule]:
    """Fits the rules on the questions of all kinds whose answer was retrieved."""
    answerable = join([each.answerable() for each in kinds.values()])
    rules = fit_stopping_rules(answerable, score, DEFAULT_PASSAGES)
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
