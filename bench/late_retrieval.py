"""Measures the processor time of retrieving from all shards of an index, in one thread.

It knows how a node retrieves. It does not know the front node, so the times have no encoding.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.quantiles import nearest_rank
from winnow.bundle import Bundle
from winnow.candidates.joint import without_outranked
from winnow.candidates.limits import candidate_limits
from winnow.content_node.late_interaction.computed_tokens import ComputedTokens
from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.content_node.late_interaction.scoring import LateRanking, LateScorer
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.retrieving import (
    Candidates,
    find_candidates,
    rank_candidates,
    retrieve,
)
from winnow.domain.answered import ShardTimings
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.errors import ArtefactError
from winnow.inference.encoder import open_question_encoder
from winnow.searcher import Retrieved
from winnow.text.tokenizer import Tokenizer

_DEPTH = RetrievalDepth(passages=10, candidates=100, by_words=100)
"""The defaults of a front node."""
_EF = 128


class _NoModel:
    """No model: the index has the token vectors of all passages."""

    opened = None

    def open(self) -> PassageTokens:
        raise ArtefactError("the index has passages without token vectors")

    def close(self) -> None:
        """Does nothing."""


def measure_retrieval(
    index: Path, questions: Sequence[str], bundle: Bundle, repetitions: int
) -> list[dict[str, str | float]]:
    """Returns quantiles of the time to retrieve from all shards, in milliseconds, by method.

    The methods take turns. Raises ArtefactError if the index has no token vectors.
    """
    fingerprint = bundle.manifest.token_vectors_fingerprint
    views = [
        view_of(open_shard(path, _EF, token_vectors_fingerprint=fingerprint))
        for path in sorted(index.glob("shard-*"))
    ]
    entry = bundle.manifest.late_interaction
    if entry is None or not views or not all(view.has_token_vectors for view in views):
        raise ArtefactError(f"{index} has no token vectors of {bundle.directory}")
    scorer = LateScorer(_NoModel(), ComputedTokens())
    late = LateRanking(words=entry.words, tokens=entry.tokens, scorer=scorer)
    weight = bundle.manifest.retrieval.words

    def alone(question: EncodedQuestion, ranking: LateRanking | None) -> None:
        results = [retrieve(view, question, _DEPTH, weight, None, ranking) for view in views]
        without_outranked(_retrieved(results), _DEPTH)

    def together(question: EncodedQuestion, ranking: LateRanking | None) -> None:
        found = [find_candidates(view, question, _DEPTH) for view in views]
        limits = candidate_limits(found, _DEPTH)
        results = [rank_candidates(each, limits, weight, None, ranking) for each in found]
        without_outranked(_retrieved(results), _DEPTH)

    encoded = _encode(bundle, questions)
    methods: dict[str, Callable[[EncodedQuestion], None]] = {
        "without late interaction, each shard alone": lambda each: alone(_plain(each), None),
        "without late interaction, all shards together": lambda each: together(_plain(each), None),
        "late interaction, each shard alone": lambda each: alone(each, late),
        "late interaction, all shards together": lambda each: together(each, late),
    }
    times: dict[str, list[float]] = {method: [] for method in methods}
    for number in range(repetitions + 1):
        for question in encoded:
            for method, run in methods.items():
                began = time.thread_time()
                run(question)
                if number:  # the first round fills caches
                    times[method].append((time.thread_time() - began) * 1e3)
    return [
        {
            "retrieval": method,
            "p50, ms": nearest_rank(own, 0.5),
            "mean, ms": sum(own) / len(own),
            "p99, ms": nearest_rank(own, 0.99),
        }
        for method, own in times.items()
    ]


def _encode(bundle: Bundle, questions: Sequence[str]) -> list[EncodedQuestion]:
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special, token_vectors=True)
    limit = bundle.manifest.encoder.max_question_tokens - 2
    encoded = []
    for text in questions:
        ids = tokenizer.tokenise(text).ids[:limit]
        found = encoder.encode_question(ids)
        encoded.append(
            EncodedQuestion(
                text=text,
                token_ids=tuple(ids),
                vector=found.vector,
                bundle_fingerprint=bundle.manifest.fingerprint,
                tokens=found.tokens,
            )
        )
    return encoded


def _plain(question: EncodedQuestion) -> EncodedQuestion:
    return replace(question, tokens=None)


def _retrieved(results: Sequence[Candidates]) -> list[Retrieved]:
    return [
        Retrieved(each.hits, each.distances, ShardTimings(), candidate_words=each.words)
        for each in results
    ]
