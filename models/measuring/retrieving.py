"""Retrieves passages offline as a shard does, and fits the weight of matching words.

The weight is fitted on held-out training questions. It maximises the probability that the passage
with the answer is ranked first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from models.data import DataError, Passage
from models.measuring.fitting import fit_signed_weights, ranking_loss
from models.mining.embedding import Embedder
from models.mining.mine import TrainingQuestion, nearest_rows
from models.mining.retrievers import ScoredPassage
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.postings import Postings
from winnow.content_node.shard.words import WordIndex

CANDIDATES = 100
MAX_WORD_WEIGHT = 1.0
"""Largest weight of matching words. Beyond it, the vector distance would hardly count."""
_RIDGE = 1e-4
_MIN_DISTANCE_WEIGHT = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NearestPassages:
    """Passages with the nearest vectors to each question. Arrays are [questions, candidates]."""

    indices: NDArray[np.int64]
    distances: Floats
    """Squared distances."""
    matches: Floats
    """BM25 scores."""

    def hybrid_distances(self, word_weight: float) -> Floats:
        """Returns the squared distances minus the weighted BM25 scores."""
        return self.distances - word_weight * self.matches


def retrieve(
    questions: Sequence[TrainingQuestion],
    passages: Sequence[Passage],
    embedder: Embedder,
    tokenizer: Tokenizer,
) -> NearestPassages:
    """Returns the nearest passages of every question, at most `CANDIDATES`."""
    vectors = embedder.passages(passages)
    question_vectors = embedder.questions([question.question for question in questions])
    indices = nearest_rows(question_vectors, vectors, min(CANDIDATES, len(passages) - 1))
    distances = np.stack(
        [
            ((vector - vectors[row]) ** 2).sum(1)
            for vector, row in zip(question_vectors, indices, strict=True)
        ]
    )
    tokens, ends, rarities = _index_words(passages, tokenizer)
    words = WordIndex(tokens, ends)
    terms = [
        rarities.terms_of_tokens(tokenizer.encode(question.question, add_special_tokens=False).ids)
        for question in questions
    ]
    matches = np.stack(
        [words.bm25_scores(each, row.tolist()) for each, row in zip(terms, indices, strict=True)]
    )
    return NearestPassages(indices, distances.astype(np.float64), matches)


def find_candidates(
    questions: Sequence[str],
    passages: Sequence[Passage],
    embedder: Embedder,
    tokenizer: Tokenizer,
    count: int,
) -> list[list[ScoredPassage]]:
    """Returns the nearest `count` passages of every question and its best `count` by words.

    The nearest come first.
    """
    vectors, question_vectors = embedder.passages(passages), embedder.questions(questions)
    nearest = nearest_rows(question_vectors, vectors, min(count, len(passages) - 1))
    tokens, ends, rarities = _index_words(passages, tokenizer)
    postings = Postings.from_tokens(tokens, ends)
    found = []
    for question, vector, near in zip(questions, question_vectors, nearest.tolist(), strict=True):
        terms = rarities.terms_of_tokens(tokenizer.encode(question, add_special_tokens=False).ids)
        best, of_near = postings.best(terms, count, others=near)
        words = {**dict(best), **dict(zip(near, of_near.tolist(), strict=True))}
        rows = list(dict.fromkeys([*near, *(row for row, _ in best)]))
        distances = ((vector - vectors[rows]) ** 2).sum(1).tolist()
        found.append(
            [
                ScoredPassage(passages[row], distance, words[row])
                for row, distance in zip(rows, distances, strict=True)
            ]
        )
    return found


def fit_word_weight(nearest_passages: NearestPassages, is_right: NDArray[np.bool_]) -> float:
    """Returns the squared distance that one unit of BM25 is worth.

    `is_right` marks the candidates with the answer. Questions without such a candidate are left
    out.

    Raises:
        DataError: no candidate of any question has the answer.

    """
    is_answered = is_right.any(1)
    if not is_answered.any():
        raise DataError("no training question has its answer in a near passage: train the encoder")
    distances, matches = (
        torch.tensor(each[is_answered])
        for each in (nearest_passages.distances, nearest_passages.matches)
    )
    target = torch.tensor(is_right[is_answered])

    def loss(weights: Tensor) -> Tensor:
        distance, words = weights.unbind()
        scores = words * matches - distance * distances
        return ranking_loss(scores, target) + _RIDGE * weights.sum()

    distance, words = fit_signed_weights(torch.tensor([9.0, 0.25]).double(), loss).tolist()
    return min(float(words) / max(float(distance), _MIN_DISTANCE_WEIGHT), MAX_WORD_WEIGHT)


def recall_by_passages(
    nearest_passages: NearestPassages,
    is_right: NDArray[np.bool_],
    word_weight: float,
    counts: Sequence[int],
) -> list[float]:
    """Returns the percentage of questions with the answer in the best `count` passages.

    One value for each of `counts`.
    """
    order = nearest_passages.hybrid_distances(word_weight).argsort(1, kind="stable")
    ordered = np.take_along_axis(is_right, order, 1)
    return [100 * float(ordered[:, :count].any(1).mean()) for count in counts]


def _index_words(
    passages: Sequence[Passage], tokenizer: Tokenizer
) -> tuple[NDArray[np.uint32], NDArray[np.int64], BuiltRarities]:
    """Returns the tokens of all passages, the end of each passage's tokens, and the rarities."""
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    tokens = [np.array(encoding.ids, np.uint32) for encoding in encoded]
    counts = count_words(tokens)
    ends = np.cumsum([len(each) for each in tokens], dtype=np.int64)
    mean_length = counts.tokens / max(len(tokens), 1)
    rarities = BuiltRarities(counts.passages, len(tokens), mean_length)
    return np.concatenate(tokens), ends, rarities
