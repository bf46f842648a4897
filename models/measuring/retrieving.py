"""Retrieving offline as a shard does: nearest by encoding, then by distance and words; and what a
matched word is worth in distance.

That is fitted on training questions that no model has seen: the weight under which the passage
that has the answer most likely comes first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.data import DataError, Passage
from models.measuring.fitting import minimise
from models.mining.embedding import Embedder
from models.mining.mine import TrainingQuestion, nearest
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.words import WordIndex

CANDIDATES = 100
MOST = 1.0
"""Worth at which distance hardly counts any more."""
_RIDGE = 1e-4
_LEAST = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NearestPassages:
    """The nearest passages of each question by encoding, [questions, candidates]."""

    places: NDArray[np.int64]
    distances: Floats
    """Squared distances."""
    matches: Floats
    """BM25."""

    def hybrid_distances(self, word_weight: float) -> Floats:
        """Distances less what matches are worth."""
        return self.distances - word_weight * self.matches


def retrieve(
    questions: Sequence[TrainingQuestion],
    passages: Sequence[Passage],
    embedder: Embedder,
    tokenizer: Tokenizer,
) -> NearestPassages:
    """Returns the nearest `CANDIDATES` of `passages`; fewer if there are fewer."""
    vectors = embedder.passages(passages)
    asked = embedder.questions([question.question for question in questions])
    places = nearest(asked, vectors, min(CANDIDATES, len(passages) - 1))
    distances = np.stack(
        [((one - vectors[own]) ** 2).sum(1) for one, own in zip(asked, places, strict=True)]
    )
    words, rarities = _words(passages, tokenizer)
    terms = [rarities.terms_of_tokens(_ids(tokenizer, question.question)) for question in questions]
    matches = np.stack(
        [words.bm25_scores(one, own.tolist()) for one, own in zip(terms, places, strict=True)]
    )
    return NearestPassages(places, distances.astype(np.float64), matches)


def fit_words(near: NearestPassages, right: NDArray[np.bool_]) -> float:
    """Returns the squared distance that one unit of BM25 is worth.

    `right` says which candidates have the answer; questions without any are left out.

    Raises:
        DataError: no question has any.

    """
    able = right.any(1)
    if not able.any():
        raise DataError("no passage that answers a training question is near it: train the encoder")
    distances, matches = (torch.tensor(each[able]) for each in (near.distances, near.matches))
    target = torch.tensor(right[able])
    roots = torch.tensor([3.0, 0.5], dtype=torch.float64, requires_grad=True)

    def loss() -> torch.Tensor:
        distance, words = (roots**2).unbind()  # neither ever counts against a passage
        scores = words * matches - distance * distances
        chosen = scores.masked_fill(~target, float("-inf")).logsumexp(1)
        lost: torch.Tensor = (scores.logsumexp(1) - chosen).mean() + _RIDGE * (roots**2).sum()
        return lost

    minimise([roots], loss)
    distance, words = (roots.detach() ** 2).tolist()
    return min(float(words) / max(float(distance), _LEAST), MOST)


def recall_by_passages(
    near: NearestPassages, right: NDArray[np.bool_], word_weight: float, steps: Sequence[int]
) -> list[float]:
    """Returns the percentage of questions with an answer among the best passages, for each step."""
    order = near.hybrid_distances(word_weight).argsort(1, kind="stable")
    ordered = np.take_along_axis(right, order, 1)
    return [100 * float(ordered[:, :step].any(1).mean()) for step in steps]


def _words(passages: Sequence[Passage], tokenizer: Tokenizer) -> tuple[WordIndex, BuiltRarities]:
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    own = [np.array(encoding.ids, np.uint32) for encoding in encoded]
    counts = count_words(own)
    ends = np.cumsum([len(tokens) for tokens in own], dtype=np.int64)
    mean = counts.tokens / max(len(own), 1)
    return WordIndex(np.concatenate(own), ends), BuiltRarities(counts.passages, len(own), mean)


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False).ids)
