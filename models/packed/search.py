"""Searches candidates by vectors and words, as a content node does, but exactly.

Scores are in single precision, so they differ from a shard's scores in the last digits.
"""

import warnings
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from models.packed.tokens import PassageTokens, QuestionTokens

K1, B = 0.9, 0.4
"""Constants of BM25, the same as in `winnow.content_node.shard.bm25`."""
_FAR = 1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDepth:
    """Numbers of candidates of a search."""

    nearest: int
    """Candidates by vector distance."""
    by_words: int
    """Candidates by BM25."""
    kept: int
    """Candidates to keep of both kinds together, by fused distance."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of questions, best first by fused distance.

    Every tensor is [questions, candidates].
    """

    rows: Tensor
    """Passages, int64, padded by -1."""
    distances: Tensor
    """Squared distances."""
    words: Tensor
    """BM25 scores."""

    def take(self, indices: Tensor) -> Self:
        """Returns the candidates of some of the questions, by index or by mask."""
        return type(self)(self.rows[indices], self.distances[indices], self.words[indices])


def join_candidates(parts: list[Candidates]) -> Candidates:
    """Returns the candidates of several batches of questions as one batch."""
    return Candidates(
        torch.cat([part.rows for part in parts]),
        torch.cat([part.distances for part in parts]),
        torch.cat([part.words for part in parts]),
    )


class WordMatrix:
    """BM25 weights of the words in every passage, as a sparse matrix [passages, vocabulary]."""

    def __init__(self, passages: PassageTokens, rows: Tensor) -> None:
        vocabulary, count = len(passages.continues), len(rows)
        lengths = passages.lengths[rows]
        owners = torch.arange(count, device=rows.device).repeat_interleave(lengths)
        begins = lengths.cumsum(0) - lengths
        places = torch.arange(len(owners), device=rows.device)
        places += (passages.starts[rows] - begins)[owners]
        keys = owners.mul_(vocabulary).add_(passages.tokens[places])
        del owners, places
        keys, times = torch.unique(keys, return_counts=True)
        owners, words = keys // vocabulary, keys % vocabulary
        del keys
        frequencies = torch.bincount(words, minlength=vocabulary).double()
        self.rarities = torch.log1p((count - frequencies + 0.5) / (frequencies + 0.5)).float()
        mean_length = lengths.sum() / max(count, 1)
        saturations = (K1 * (1 - B + B * lengths / mean_length)).float()[owners]
        values = times * (K1 + 1) / (times + saturations)
        ends = torch.bincount(owners, minlength=count).cumsum(0)
        starts = torch.cat([ends.new_zeros(1), ends]).int()
        self._matrix = _sparse(starts, words.int(), values.float(), (count, vocabulary))

    def scores(self, questions: QuestionTokens, numbers: Tensor) -> Tensor:
        """Returns the BM25 scores of all passages, [passages, questions]."""
        sequences = questions.sequences(numbers)
        weights = torch.zeros(len(numbers), len(self.rarities), device=numbers.device)
        kept = sequences.text_mask
        places = torch.arange(len(numbers), device=numbers.device)[:, None].expand_as(kept)[kept]
        tokens = sequences.ids[kept]
        weights[places, tokens] = self.rarities[tokens]
        return self._matrix @ weights.T.contiguous()


class ExactIndex:
    """An exact index of passages by vectors and words, on a GPU or CPU."""

    def __init__(self, passages: PassageTokens, rows: Tensor, vectors: Tensor) -> None:
        """`vectors` are the vectors of the passages `rows`, [rows, width]."""
        self._rows, self._vectors = rows, vectors
        self._words = WordMatrix(passages, rows)

    def replace_vectors(self, vectors: Tensor) -> None:
        """Replaces the vectors of all passages, for another encoder."""
        self._vectors = vectors

    @torch.no_grad()
    def search(
        self,
        questions: QuestionTokens,
        numbers: Tensor,
        vectors: Tensor,
        depth: SearchDepth,
        word_weight: float,
    ) -> Candidates:
        """Returns the candidates of the questions `numbers`, whose vectors are `vectors`."""
        nearest, by_words = (min(each, len(self._rows)) for each in (depth.nearest, depth.by_words))
        cosines = vectors.to(self._vectors.dtype) @ self._vectors.T
        scores = self._words.scores(questions, numbers)
        found = torch.cat([cosines.topk(nearest, 1).indices, scores.T.topk(by_words, 1).indices], 1)
        del cosines
        found = found.sort(1).values
        repeated = torch.zeros_like(found, dtype=torch.bool)
        repeated[:, 1:] = found[:, 1:] == found[:, :-1]
        exact = torch.einsum("qw,qcw->qc", vectors.float(), self._vectors[found].float())
        distances, words = 2 - 2 * exact, scores.T.gather(1, found)
        fused = (distances - word_weight * words).masked_fill(repeated, _FAR)
        order = fused.argsort(dim=1, stable=True)[:, : depth.kept]
        rows = torch.where(repeated, -1, self._rows[found])
        return Candidates(*(each.gather(1, order) for each in (rows, distances, words)))


def _sparse(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Returns a sparse CSR matrix. Suppresses PyTorch's warning that CSR is in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=True)
