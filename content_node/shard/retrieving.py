"""Finding passages in a view: the nearest, the best by words, or both.

Whichever way a passage was found, it has distance and BM25, and is ordered by the two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.nearest import by_distance
from winnow.content_node.shard.segment import Found, Rows, Terms, Vector
from winnow.content_node.shard.top_k_bound import RankedBound, contenders
from winnow.content_node.shard.view import ShardView
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.inference.stop import Stop

_Masks = Sequence[Rows | None]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a shard has for a question."""

    hits: tuple[Hit, ...]
    """All that may be chosen to be read, whatever other shards have; best first."""
    distances: tuple[float, ...]
    """Of the nearest passages, nearest first."""
    words: tuple[float, ...] = ()
    """BM25 of the best passages by words, best first."""


def retrieve(
    view: ShardView,
    question: EncodedQuestion,
    depth: RetrievalDepth,
    word_weight: float,
    stop: Stop | None = None,
) -> Candidates:
    """The candidates of a shard, and those of them that may be read.

    `word_weight` is the squared distance that one unit of BM25 is worth.

    Raises:
        InvalidRequestError: the filter of `depth` is none.
        StoppedError: `stop` was set before all passages were compared.
        ArtefactError: a file was written to since it was verified.

    """
    terms, vector = view.built.terms(question), question.vector
    # of many equal passages no more can be chosen, or be the last candidates
    most = max(depth.passages, depth.looked_at, depth.best_words)
    masks = [each.segment.thinned(each.allowed(depth.where, stop), most) for each in view.placed]
    near = _nearest(view, vector, depth.looked_at, masks, stop)
    best = _best(view, terms, depth.best_words, masks, stop)
    rows = list(dict.fromkeys(row for row, _ in (*near, *best)))
    distances = _distances(view, vector, rows, dict(near))
    matches = _matches(view, terms, rows, dict(best))
    words = matches.astype(np.float32)
    hybrid = _hybrid(distances, matches, depth, word_weight).tolist()
    ways = [
        RankedBound(distances.tolist(), near[-1][1] if near else -np.inf),
        RankedBound((-words).tolist(), -float(np.float32(best[-1][1])) if best else -np.inf),
    ]
    # names take longer to get than figures to compare: only of those that need them
    places = contenders(hybrid, ways, depth.passages)
    named = dict(zip(places, view.named([rows[place] for place in places]), strict=True))
    some = [RankedBound([way.figures[place] for place in places], way.line) for way in ways]
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
    told = tuple(float(np.float32(score)) for _, score in best[: depth.best_words])
    far = tuple(distance for _, distance in near[: depth.looked_at])
    return Candidates(tuple(hits), far, told)


def _hybrid(
    distances: NDArray[np.float32],
    matches: NDArray[np.float64],
    depth: RetrievalDepth,
    word_weight: float,
) -> NDArray[np.float32]:
    """What passages are ordered by; in single precision, as on the wire, so that the order is the
    same on a node and in the front.
    """
    if not depth.by_words and not depth.candidates:
        return distances
    if depth.by_words_alone:
        return (-(word_weight or 1.0) * matches).astype(np.float32)
    return (distances - word_weight * matches).astype(np.float32)


def _nearest(view: ShardView, vector: Vector, k: int, masks: _Masks, stop: Stop | None) -> Found:
    """The nearest `k` and all that are as near as the last of them, nearest first: so it does not
    matter where rows with equal vectors lie.
    """
    found = [
        (placed.first + row, distance)
        for placed, mask in zip(view.placed, masks, strict=True)
        for row, distance in placed.segment.nearest(vector, k, mask, stop)
    ]
    found.sort(key=by_distance)
    return [pair for pair in found if pair[1] <= found[:k][-1][1]]


def _best(view: ShardView, terms: Terms, k: int, masks: _Masks, stop: Stop | None) -> Found:
    """The best `k` and all that are as good as the last of them in single precision, best first: so
    it does not matter where rows with equal scores lie.
    """
    found = [
        (placed.first + row, score)
        for placed, mask in zip(view.placed, masks, strict=True)
        for row, score in (placed.segment.best_by_words(terms, k, mask, stop) if k else ())
    ]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    if len(found) <= k:
        return found
    least = np.float32(found[k - 1][1])
    return [pair for pair in found if np.float32(pair[1]) >= least]


def _distances(
    view: ShardView, vector: Vector, rows: Sequence[int], known: Mapping[int, float]
) -> NDArray[np.float32]:
    others = [row for row in rows if row not in known]
    found = view.each(others, lambda segment, own: segment.distances(vector, own).tolist())
    every = {**known, **dict(zip(others, found, strict=True))}
    return np.array([every[row] for row in rows], np.float32)


def _matches(
    view: ShardView, terms: Terms, rows: Sequence[int], known: Mapping[int, float]
) -> NDArray[np.float64]:
    others = [row for row in rows if row not in known]
    found = view.each(others, lambda segment, own: segment.match(terms, own).tolist())
    every = {**known, **dict(zip(others, found, strict=True))}
    return np.array([every[row] for row in rows], np.float64)
