"""Fits the weights of retrieval, score and early stopping on held-out training questions."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from models.assemble import ScoreWeights, amend_manifest, amend_weights, partial_manifest
from models.data import DataError, Passage
from models.measuring.calibrate import (
    PASSAGES,
    Candidates,
    RankedPassage,
    best_passages,
    read_candidates,
    sample_questions,
)
from models.measuring.collection import indexes_of, read_collection
from models.measuring.confidence import SHARE
from models.measuring.judging import JudgedQuestion
from models.measuring.reading import OfflineReader
from models.measuring.retrieved import check_retrieved
from models.measuring.retrieving import (
    NearestPassages,
    fit_word_weight,
    recall_by_passages,
    retrieve,
)
from models.mining.embedding import Embedder
from models.mining.mine import TrainingQuestion
from models.mining.retrieved_file import encoder_origin, read_retrieved
from models.mining.retrievers import ScoredPassage, ServedRetriever
from models.steps.mining import load_held_out
from models.steps.reading_fit import (
    COUNTS,
    DEFAULT_PASSAGES,
    Report,
    curve_text,
    fit_reading,
    fit_relevance,
    relevance_entry,
)
from models.workspace import Workspace
from winnow.bundle import Bundle, load_bundle
from winnow.bundle.manifest import RetrievalEntry
from winnow.domain.text_relevance import TextRelevance
from winnow.files.result_files import convert_write_errors

WIKIPEDIA = "Wikipedia"
"""The kind of text of the held-out questions. Each collection is a further kind, with its name."""
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


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is calibrated, and on what."""

    workspace: Workspace
    bundle: Path
    """Directory of the bundle whose weights are fitted and replaced."""
    report: Report
    """Gets lines about the fit."""
    _: KW_ONLY
    collections: Sequence[Path] = ()
    """Indexes with questions (`models.measuring.collection`), with different names."""
    share: float = 1.0
    """Share of the held-out questions of Wikipedia to fit on."""

    def held_out(self, seed: int) -> tuple[list[Passage], list[TrainingQuestion]]:
        """Returns all passages of Wikipedia, and a sample of the held-out questions.

        Raises DataError if no question is held out.
        """
        passages, questions = load_held_out(self.workspace.mined_questions)
        return passages, self.sample(questions, seed)

    def sample(self, questions: Sequence[TrainingQuestion], seed: int) -> list[TrainingQuestion]:
        """Draws the held-out questions to fit on; raises DataError if there are none."""
        drawn = sample_questions(questions, _MAX_QUESTIONS, seed)
        if not drawn:
            raise DataError(
                f"{self.workspace.root} has no held-out questions: mine more training questions"
            )
        chosen = random.Random(seed).sample(drawn, max(1, round(self.share * len(drawn))))
        return drawn if self.share == 1 else chosen

    def result_files(self) -> list[Path]:
        """Returns the files that are written at the end."""
        kinds = [WIKIPEDIA, *(each.name for each in self.collections)]
        scored = [self.workspace.scored_answer_candidates(kind) for kind in kinds]
        return [*scored, partial_manifest(self.bundle)]

    def embedder(self, bundle: Bundle) -> Embedder:
        """Returns an encoder of passages and questions that caches vectors."""
        return Embedder.of(bundle, cache=self.workspace.vectors)


@dataclass(frozen=True, slots=True)
class RetrievedPassages:
    """Questions about a kind of text, with the passages that were retrieved for each."""

    questions: Sequence[JudgedQuestion]
    passages: Sequence[Sequence[RankedPassage]]


def calibrate(calibration: Calibration, seed: int) -> ScoreWeights:
    """Fits all weights on held-out questions and writes them into the bundle.

    Returns the weights of the score.
    """
    bundle = load_bundle(calibration.bundle)
    passages, questions = calibration.held_out(seed)
    tokenizer = Tokenizer.from_file(str(bundle.tokenizer))
    nearest = retrieve(questions, passages, calibration.embedder(bundle), tokenizer)
    word_weight = _fit_word_weight(nearest, questions, calibration.report)
    retrieved = best_passages(nearest, passages, word_weight)
    bundle = _with_word_weight(bundle, word_weight)
    return _fit_and_write(calibration, bundle, questions, retrieved, share=1.0)


def calibrate_on_retrieved(calibration: Calibration, seed: int) -> ScoreWeights:
    """Fits the weights of score and early stopping on the passages that `mine-ranking` retrieved.

    Keeps the weight of matching words, and ranks these passages with it. Returns the weights of the
    score.

    Raises:
        DataError: the passages were retrieved with other encoders.

    """
    workspace, bundle = calibration.workspace, load_bundle(calibration.bundle)
    word_weight = bundle.manifest.retrieval.words
    passages = read_retrieved(workspace.retrieved_passages, encoder_origin(bundle))
    _, held_out = load_held_out(workspace.questions_with_negatives)
    questions = [each for each in held_out if len(passages.get(each.question, ())) >= PASSAGES]
    questions = calibration.sample(questions, seed)
    retrieved = [
        ranked_passages(passages[question.question], word_weight)[:PASSAGES]
        for question in questions
    ]
    return _fit_and_write(calibration, bundle, questions, retrieved, SHARE)


def calibrate_texts(calibration: Calibration, seed: int) -> TextRelevance:
    """Fits the relevance of texts that callers send, and writes its weights into the bundle.

    Retrieves passages for held-out questions with the bundle's weight of matching words, which does
    not change. Returns the weights.
    """
    bundle = load_bundle(calibration.bundle)
    passages, questions = calibration.held_out(seed)
    tokenizer = Tokenizer.from_file(str(bundle.tokenizer))
    nearest = retrieve(questions, passages, calibration.embedder(bundle), tokenizer)
    retrieved = best_passages(nearest, passages, bundle.manifest.retrieval.words)
    kinds = _with_collections(calibration, bundle, questions, retrieved, DEFAULT_PASSAGES)
    weights = fit_relevance(read_passages(calibration, kinds), calibration.report)
    amend_manifest(calibration.bundle, text_relevance=relevance_entry(weights))
    return weights


def read_passages(
    calibration: Calibration,
    kinds: Mapping[str, RetrievedPassages],
    *,
    late_interaction: bool = False,
) -> dict[str, Candidates]:
    """Reads the retrieved passages of each kind of text. Keeps the scores in the workspace.

    `late_interaction`: whether the passages were ranked by it.
    """
    bundle = load_bundle(calibration.bundle)
    reader = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    read = {
        kind: read_candidates(
            each.questions, each.passages, reader, late_interaction=late_interaction
        )
        for kind, each in kinds.items()
    }
    for kind, candidates in read.items():
        path = calibration.workspace.scored_answer_candidates(kind)
        with convert_write_errors(path):
            np.savez_compressed(path, **candidates.arrays())
    return read


def judged_questions(questions: Sequence[TrainingQuestion]) -> list[JudgedQuestion]:
    """Returns training questions with their accepted answers."""
    return [JudgedQuestion(text=each.question, answers=each.answers) for each in questions]


def retrieve_from(
    collection: Path, bundle: Bundle, count: int
) -> tuple[list[JudgedQuestion], list[Sequence[ScoredPassage]]]:
    """Returns the questions of a collection, and the best `count` passages of each question."""
    questions = read_collection(collection)
    retriever = ServedRetriever(indexes_of(collection), bundle)
    texts = [question.text for question in questions]
    vectors = Embedder.of(bundle).questions(texts)
    found = [retriever.find(*each, count) for each in zip(texts, vectors, strict=True)]
    return questions, found


def _fit_and_write(
    calibration: Calibration,
    bundle: Bundle,
    questions: Sequence[TrainingQuestion],
    retrieved: Sequence[Sequence[RankedPassage]],
    share: float,
) -> ScoreWeights:
    kinds = _with_collections(calibration, bundle, questions, retrieved, PASSAGES)
    read = read_passages(calibration, kinds)
    shares = [share if kind == WIKIPEDIA else 1.0 for kind in read]
    fit = fit_reading(read, shares, calibration.report)
    amend_weights(
        calibration.bundle,
        retrieval=bundle.manifest.retrieval.model_dump(),
        score=fit.score_entry(),
        stopping=fit.stopping_entries(),
        text_relevance=relevance_entry(fit_relevance(read, calibration.report)),
    )
    return fit.score


def _with_collections(
    calibration: Calibration,
    bundle: Bundle,
    questions: Sequence[TrainingQuestion],
    retrieved: Sequence[Sequence[RankedPassage]],
    count: int,
) -> dict[str, RetrievedPassages]:
    """Returns the best `count` passages of each question, also of those of all collections."""
    best = [row[:count] for row in retrieved]
    kinds = {WIKIPEDIA: RetrievedPassages(judged_questions(questions), best)}
    word_weight = bundle.manifest.retrieval.words
    for collection in calibration.collections:
        asked, found = retrieve_from(collection, bundle, count)
        ranked = [[_ranked_passage(each, word_weight) for each in row] for row in found]
        kinds[collection.name] = RetrievedPassages(asked, ranked)
    for kind, each in kinds.items():
        check_retrieved(kind, each.questions, each.passages, count)
    return kinds


def ranked_passages(found: Sequence[ScoredPassage], word_weight: float) -> list[RankedPassage]:
    """Returns passages in the order of their hybrid distance with this weight."""
    ranked = [_ranked_passage(each, word_weight) for each in found]
    return sorted(ranked, key=lambda each: each.hybrid_distance)


def _with_word_weight(bundle: Bundle, word_weight: float) -> Bundle:
    """Returns the bundle as it will be with this weight of matching words."""
    retrieval = RetrievalEntry(words=word_weight)
    return replace(bundle, manifest=bundle.manifest.model_copy(update={"retrieval": retrieval}))


def _ranked_passage(scored: ScoredPassage, word_weight: float) -> RankedPassage:
    hybrid_distance = scored.distance - word_weight * scored.words
    return RankedPassage(scored.passage, scored.distance, hybrid_distance, scored.words)


def _fit_word_weight(
    nearest: NearestPassages, questions: Sequence[TrainingQuestion], report: Report
) -> float:
    is_right = nearest.indices == np.array([each.positive for each in questions])[:, None]
    fitted = round(fit_word_weight(nearest, is_right), 5)
    for weight in (0.0, fitted):
        curve = recall_by_passages(nearest, is_right, weight, COUNTS)
        report(f"word weight {weight:g}: recall in percent by passages {curve_text(curve)}")
    return fitted
