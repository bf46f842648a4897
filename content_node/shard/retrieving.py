"""Retrieves passages from a view: the nearest, the best by words, or both.

Every passage gets a distance and a BM25 score, and is ranked by both. If question and passages have
token vectors, it is also ranked by late interaction. A call that retrieves from several shards
first finds the candidates of all. Then it ranks those that are candidates of all shards together.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.candidates.limits import CandidateLimits
from winnow.candidates.top_k_bound import CandidateRule, possible_top_k
from winnow.content_node.late_interaction.scoring import LateRanking, LateScores
from winnow.content_node.shard.bm25 import Terms
from winnow.content_node.shard.nearest import by_distance
from winnow.content_node.shard.rows import ScoredRows, SelectedRows
from winnow.content_node.shard.view import ShardView
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.inference.stop_signal import StopSignal


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of a shard for a question."""

    hits: tuple[Hit, ...]
    """Passages that the front may read, depending on the hits of other shards; best first."""
    distances: tuple[float, ...]
    """Distances of the nearest passages, nearest first."""
    words: tuple[float, ...] = ()
    """BM25 scores of the best passages by words, best first."""
    late_interaction: bool = False
    """Whether the passages were ranked by late interaction."""
    _: KW_ONLY
    without_tokens: int = 0
    """Candidates without token vectors, if they are why late interaction was not used."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundCandidates:
    """Candidates of a shard that are not ranked yet."""

    view: ShardView
    question: EncodedQuestion
    depth: RetrievalDepth
    rows: NDArray[np.int64]
    """Rows of the candidates, [candidates]."""
    distances: NDArray[np.float32]
    """Their squared distances, [candidates]."""
    bm25: NDArray[np.float64]
    """Their BM25 scores, [candidates]."""
    candidate_distances: tuple[float, ...]
    """Distances of the nearest passages, nearest first."""
    candidate_words: tuple[float, ...]
    """BM25 scores of the best passages by words in single precision, best first."""
    limits: CandidateLimits
    """Limits of candidates if this were the only shard."""


def retrieve(
    view: ShardView,
    question: EncodedQuestion,
    depth: RetrievalDepth,
    word_weight: float,
    stop: StopSignal | None = None,
    late: LateRanking | None = None,
) -> Candidates:
    """Retrieves the candidates of a shard, and the hits among them that may be read.

    `word_weight` is the squared distance that one unit of BM25 is worth. `late` ranks the
    candidates by late interaction, if question and shard have token vectors.

    Raises:
        InvalidRequestError: `depth.where` is not a filter.
        StoppedError: `stop` was set before all passages were compared.
        ArtefactError: a file was changed after it was verified.

    """
    found = find_candidates(view, question, depth, stop)
    return rank_candidates(found, found.limits, word_weight, stop, late)


def find_candidates(
    view: ShardView,
    question: EncodedQuestion,
    depth: RetrievalDepth,
    stop: StopSignal | None = None,
) -> FoundCandidates:
    """Finds the candidates of a shard. Raises the errors of `retrieve`."""
    terms, vector = view.built_rarities.terms(question), question.vector
    k, by_words = depth.nearest_candidates, depth.word_candidates
    # of a group of equal passages, no more than this can be candidates or be read
    limit = max(depth.passages, k, by_words)
    searched = [placed.searched_rows(depth.where, limit, stop) for placed in view.segments]
    near = _nearest_with_ties(
        [
            (placed.first_row + row, distance)
            for placed, rows in zip(view.segments, searched, strict=True)
            for row, distance in placed.segment.nearest(vector, k, rows, stop)
        ],
        k,
    )
    distance_by_row = dict(near)
    near_rows = sorted(distance_by_row)
    best: ScoredRows = []
    if by_words:
        best, bm25_by_row = _best_by_words(view, searched, terms, by_words, near_rows, stop)
    else:
        scores = view.map_rows(
            near_rows, lambda segment, own: segment.bm25_scores(terms, own).tolist()
        )
        bm25_by_row = dict(zip(near_rows, scores, strict=True))
    others = [row for row, _ in best if row not in distance_by_row]
    distances_of_others = view.map_rows(
        others, lambda segment, own: segment.distances(vector, own).tolist()
    )
    distance_by_row.update(zip(others, distances_of_others, strict=True))
    best_words = _to_single_precision([score for _, score in best])
    return FoundCandidates(
        view=view,
        question=question,
        depth=depth,
        rows=np.array(list(distance_by_row), np.int64),
        distances=np.array(list(distance_by_row.values()), np.float32),
        bm25=np.array([bm25_by_row[row] for row in distance_by_row], np.float64),
        candidate_distances=tuple(distance for _, distance in near[:k]),
        candidate_words=tuple(best_words[:by_words]),
        limits=CandidateLimits(
            max_distance=near[-1][1] if near else -np.inf,
            min_words=best_words[-1] if best else np.inf,
        ),
    )


def rank_candidates(
    found: FoundCandidates,
    limits: CandidateLimits,
    word_weight: float,
    stop: StopSignal | None = None,
    late: LateRanking | None = None,
) -> Candidates:
    """Ranks the candidates of a shard, and chooses the hits that may be read.

    `limits` are those of the shards that are called together. Passages beyond them are left out: no
    question reads them, and late interaction would take most of the time. The other arguments are
    those of `retrieve`.

    Raises:
        StoppedError: `stop` was set.
        ArtefactError: a file was changed after it was verified.

    """
    view, depth = found.view, found.depth
    max_distance = min(found.limits.max_distance, limits.max_distance)
    min_words = max(found.limits.min_words, limits.min_words)
    words = found.bm25.astype(np.float32)
    kept = np.flatnonzero((found.distances <= max_distance) | (words >= min_words))
    rows, distances = found.rows[kept].tolist(), found.distances[kept]
    bm25, words = found.bm25[kept], words[kept]
    tokens, late_scores = found.question.tokens, LateScores(None)
    if late and tokens is not None and depth.candidates and view.has_token_vectors:
        late_scores = late.scorer.scores(view, tokens, rows, stop)
    if late is None or late_scores.values is None:
        hybrid = _hybrid_distances(distances, bm25, depth, word_weight).tolist()
    else:
        hybrid = _late_distances(distances, bm25, late_scores.values, late).tolist()
    is_late = late_scores.values is not None
    rules = [
        CandidateRule(distances.tolist(), max_distance),
        CandidateRule((-words).tolist(), -min_words),
    ]
    # ids are read only for passages that may be in the top k; they decide among equal distances
    first = possible_top_k(hybrid, rules, depth.passages)
    names = view.ids_and_sequences([rows[index] for index in first])
    first_rules = [
        CandidateRule([rule.costs[index] for index in first], rule.max_cost) for rule in rules
    ]
    keys = [(hybrid[index], name) for index, (name, _) in zip(first, names, strict=True)]
    hits = [
        Hit(
            row=rows[first[number]],
            passage_id=names[number][0],
            distance=float(distances[first[number]]),
            hybrid_distance=hybrid[first[number]],
            generation=view.generation,
            words=float(words[first[number]]),
            sequence=names[number][1],
            late_interaction=is_late,
        )
        for number in possible_top_k(keys, first_rules, depth.passages)
    ]
    return Candidates(
        tuple(hits),
        found.candidate_distances,
        found.candidate_words,
        is_late,
        without_tokens=late_scores.lacking,
    )


def _hybrid_distances(
    distances: NDArray[np.float32],
    bm25: NDArray[np.float64],
    depth: RetrievalDepth,
    word_weight: float,
) -> NDArray[np.float32]:
    """Returns the distances by which passages are ranked: lower is better.

    They are in single precision, as on the wire, so a node and the front rank alike.
    """
    if not depth.by_words and not depth.candidates:
        return distances
    if depth.is_by_words_only:
        return (-(word_weight or 1.0) * bm25).astype(np.float32)
    return (distances - word_weight * bm25).astype(np.float32)


def _late_distances(
    distances: NDArray[np.float32],
    bm25: NDArray[np.float64],
    scores: NDArray[np.float64],
    late: LateRanking,
) -> NDArray[np.float32]:
    """Returns the distances by which passages are ranked with late interaction, as above."""
    return (distances - late.words * bm25 - late.tokens * scores).astype(np.float32)


def _nearest_with_ties(scored: ScoredRows, k: int) -> ScoredRows:
    """Returns the nearest `k` and all others at the distance of the last one, nearest first.

    So the result does not depend on the segments in which rows with equal vectors are.
    """
    scored = sorted(scored, key=by_distance)
    furthest = scored[:k][-1][1] if scored else 0.0
    return [pair for pair in scored if pair[1] <= furthest]


def _best_with_ties(scored: ScoredRows, k: int) -> ScoredRows:
    """Returns the best `k` and all others with the last one's single-precision score, best first.

    So the result does not depend on the segments in which rows with equal scores are.
    """
    scored = sorted(scored, key=lambda pair: (-pair[1], pair[0]))
    single = _to_single_precision([score for _, score in scored])
    return [pair for pair, score in zip(scored, single, strict=True) if score >= single[:k][-1]]


def _to_single_precision(values: Sequence[float]) -> list[float]:
    """Rounds values to single precision."""
    rounded: list[float] = np.array(values, np.float32).tolist()
    return rounded


def _best_by_words(
    view: ShardView,
    searched: Sequence[SelectedRows],
    terms: Terms,
    k: int,
    near_rows: Sequence[int],
    stop: StopSignal | None,
) -> tuple[ScoredRows, dict[int, float]]:
    """Returns the best rows by words; and the BM25 scores of these and of `near_rows`, by row."""
    found: ScoredRows = []
    scores: dict[int, float] = {}
    for placed, rows in zip(view.segments, searched, strict=True):
        first = placed.first_row
        own = [row for row in near_rows if first <= row < first + placed.segment.rows]
        best, own_scores = placed.segment.best_by_words(
            terms, k, rows, stop, [row - first for row in own]
        )
        found += [(first + row, score) for row, score in best]
        scores.update(zip(own, own_scores.tolist(), strict=True))
    found = _best_with_ties(found, k)
    return found, scores | dict(found)
