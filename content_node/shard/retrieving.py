"""Finding passages in a view: the nearest, the best by words, or both.

Each passage gets a distance and a BM25 score, however it was found, and is ordered by the two.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.nearest import by_distance
from winnow.content_node.shard.rows import RowMask, ScoredRows
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.top_k_bound import RankedBound, contenders
from winnow.content_node.shard.view import ShardView
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.inference.stop import Stop

_Search = Callable[[Segment, RowMask | None], ScoredRows]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a shard has for a question."""

    hits: tuple[Hit, ...]
    """All passages that may be chosen to be read, for any content of other shards; best first."""
    distances: tuple[float, ...]
    """Distances of the nearest passages, nearest first."""
    words: tuple[float, ...] = ()
    """BM25 of the best passages by words, best first."""


def retrieve(
    view: ShardView,
    question: EncodedQuestion,
    depth: RetrievalDepth,
    word_weight: float,
    stop: Stop | None = None,
) -> Candidates:
    """Finds the candidates of a shard, and the hits among them that may be read.

    `word_weight` is the squared distance that one unit of BM25 is worth.

    Raises:
        InvalidRequestError: `depth.where` is not a filter.
        StoppedError: `stop` was set before all passages were compared.
        ArtefactError: a file was written to since it was verified.

    """
    terms, vector = view.built.terms(question), question.vector
    k, by_words = depth.looked_at, depth.best_words
    # of many equal passages no more can be chosen, or be the last candidates
    most = max(depth.passages, k, by_words)
    masks = [each.segment.thinned(each.allowed(depth.where, stop), most) for each in view.placed]
    near = _nearest(_searched(view, masks, lambda own, mask: own.nearest(vector, k, mask, stop)), k)
    best: ScoredRows = []
    if by_words:
        matching = _searched(
            view, masks, lambda own, mask: own.best_by_words(terms, by_words, mask, stop)
        )
        best = _best(matching, by_words)
    rows = list(dict.fromkeys(row for row, _ in (*near, *best)))
    found = _figures(view, rows, dict(near), lambda own, some: own.distances(vector, some).tolist())
    distances = np.array(found, np.float32)
    matches = np.array(
        _figures(view, rows, dict(best), lambda own, some: own.match(terms, some).tolist())
    )
    words = matches.astype(np.float32)
    hybrid = _hybrid(distances, matches, depth, word_weight).tolist()
    bounds = [
        RankedBound(distances.tolist(), near[-1][1] if near else -np.inf),
        RankedBound((-words).tolist(), -float(np.float32(best[-1][1])) if best else -np.inf),
    ]
    # names take longer to get than figures to compare, so only the contenders' names are read
    places = contenders(hybrid, bounds, depth.passages)
    named = dict(zip(places, view.named([rows[place] for place in places]), strict=True))
    some = [RankedBound([each.figures[place] for place in places], each.line) for each in bounds]
    keys = [(hybrid[place], named[place][0]) for place in places]
    hits = [
        Hit(
            row=rows[place],
            passage_id=named[place][0],
            distance=float(distances[place]),
            hybrid_distance=hybrid[place],
            generation=view.generation,
            words=float(words[place]),
            sequence=named[place][1],
        )
        for place in (places[kept] for kept in contenders(keys, some, depth.passages))
    ]
    told = tuple(float(np.float32(score)) for _, score in best[:by_words])
    far = tuple(distance for _, distance in near[:k])
    return Candidates(tuple(hits), far, told)


def _hybrid(
    distances: NDArray[np.float32],
    matches: NDArray[np.float64],
    depth: RetrievalDepth,
    word_weight: float,
) -> NDArray[np.float32]:
    """Returns the figures that passages are ordered by.

    They are in single precision, as on the wire, so a node and the front order alike.
    """
    if not depth.by_words and not depth.candidates:
        return distances
    if depth.by_words_alone:
        return (-(word_weight or 1.0) * matches).astype(np.float32)
    return (distances - word_weight * matches).astype(np.float32)


def _nearest(found: ScoredRows, k: int) -> ScoredRows:
    """Returns the nearest `k` and all that are as near as the last of them, nearest first: so it
    does not matter where rows with equal vectors lie.
    """
    found = sorted(found, key=by_distance)
    furthest = found[:k][-1][1] if found else 0.0
    return [pair for pair in found if pair[1] <= furthest]


def _best(found: ScoredRows, k: int) -> ScoredRows:
    """Returns the best `k` and all that are as good as the last of them in single precision, best
    first: so it does not matter where rows with equal scores lie.
    """
    found = sorted(found, key=lambda pair: (-pair[1], pair[0]))
    least = np.float32(found[:k][-1][1]) if found else 0.0
    return [pair for pair in found if np.float32(pair[1]) >= least]


def _searched(view: ShardView, masks: Sequence[RowMask | None], search: _Search) -> ScoredRows:
    """Searches each segment; returns rows of the view."""
    return [
        (placed.first + row, figure)
        for placed, mask in zip(view.placed, masks, strict=True)
        for row, figure in search(placed.segment, mask)
    ]


def _figures(
    view: ShardView,
    rows: Sequence[int],
    known: Mapping[int, float],
    look_up: Callable[[Segment, list[int]], list[float]],
) -> list[float]:
    """Returns a figure for each row: from `known`, or looked up in its segment."""
    others = [row for row in rows if row not in known]
    every = {**known, **dict(zip(others, view.each(others, look_up), strict=True))}
    return [every[row] for row in rows]
