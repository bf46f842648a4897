"""Measures the time of retrieving from all shards of an index, in one thread.

It knows how a node retrieves. It does not know the front node, so the times have no encoding.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from bench.quantiles import nearest_rank
from bench.synthetic import build_shard
from bench.word_vectors import DIMENSION, FINGERPRINT, WordVectors
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
from winnow.content_node.states.writing import StatesWriter
from winnow.domain.answered import ShardTimings
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import DEFAULT_EF
from winnow.domain.write import EncodedPassage, Put
from winnow.errors import ArtefactError
from winnow.inference.encoder import open_question_encoder
from winnow.passages.encoding import pack, tokenise
from winnow.passages.rows import BadRow, read_rows
from winnow.searcher import Retrieved
from winnow.text.tokenizer import Tokenizer

_DEPTH = RetrievalDepth(passages=10, candidates=100, by_words=100)
"""The defaults of a front node."""
_BATCH = 1_000


class _NoModel:
    """No model: the index has the token vectors of all passages."""

    opened = None

    def open(self) -> PassageTokens:
        raise ArtefactError("the index has passages without token vectors")

    def close(self) -> None:
        """Does nothing."""


def build_word_index(index: Path, passages: Path, count: int, bundle: Bundle) -> None:
    """Builds an index of the first `count` passages of a file, in one shard, with `WordVectors`.

    The vectors need no model, so only the graph takes long. The tokenizer is that of `bundle`.
    """
    tokenizer = Tokenizer(bundle.tokenizer)
    vectors = WordVectors(tokenizer.vocabulary)
    rows = (row.put for row in read_rows(passages) if not isinstance(row, BadRow))
    index.mkdir(parents=True)
    shard = build_shard(
        index,
        _encoded_passages(islice(rows, count), tokenizer, vectors),
        index="words",
        dimension=DIMENSION,
        fingerprint=FINGERPRINT,
    )
    StatesWriter(shard, vectors).write(1, lambda *_: None, lambda _: None)


def _encoded_passages(
    puts: Iterator[Put], tokenizer: Tokenizer, vectors: WordVectors
) -> Iterator[EncodedPassage]:
    while batch := list(islice(puts, _BATCH)):
        for each in tokenise(tokenizer, batch):
            vector = vectors.vector((*each.title.ids, *each.text.ids))
            yield pack(each.put.passage, each.title.ids, each.text, vector)


def encode_by_words(bundle: Bundle, questions: Sequence[str]) -> list[EncodedQuestion]:
    """Encodes questions for an index of `build_word_index`."""
    tokenizer = Tokenizer(bundle.tokenizer)
    vectors = WordVectors(tokenizer.vocabulary)
    return [vectors.question(text, tokenizer.tokenise(text).ids) for text in questions]


def measure_retrieval(
    index: Path,
    fingerprint: str,
    questions: Sequence[EncodedQuestion],
    bundle: Bundle,
    repetitions: int,
) -> list[dict[str, str | float]]:
    """Returns quantiles of the time to retrieve from all shards, in milliseconds, by method.

    `fingerprint` is that of the index's token vectors. The weights of words and late interaction
    are those of `bundle`. The methods take turns.

    Raises ArtefactError if the index has no token vectors.
    """
    views = [
        view_of(open_shard(path, DEFAULT_EF, token_vectors_fingerprint=fingerprint))
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

    methods: dict[str, Callable[[EncodedQuestion], None]] = {
        "without late interaction, each shard alone": lambda each: alone(_plain(each), None),
        "without late interaction, all shards together": lambda each: together(_plain(each), None),
        "late interaction, each shard alone": lambda each: alone(each, late),
        "late interaction, all shards together": lambda each: together(each, late),
    }
    if len(views) == 1:  # then it makes no difference
        methods = {name: run for name, run in methods.items() if "alone" in name}
    times: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    for number in range(repetitions + 1):
        for question in questions:
            for method, run in methods.items():
                began, elapsed = time.thread_time(), time.perf_counter()
                run(question)
                if number:  # the first round fills caches
                    spent = time.thread_time() - began, time.perf_counter() - elapsed
                    times[method].append((spent[0] * 1e3, spent[1] * 1e3))
    return [{"retrieval": method, **_quantiles(own)} for method, own in times.items()]


def _quantiles(times: Sequence[tuple[float, float]]) -> dict[str, float]:
    spent, elapsed = zip(*times, strict=True)
    return {
        "p50, ms": nearest_rank(spent, 0.5),
        "mean, ms": sum(spent) / len(spent),
        "p99, ms": nearest_rank(spent, 0.99),
        "elapsed p50, ms": nearest_rank(elapsed, 0.5),
        "elapsed p99, ms": nearest_rank(elapsed, 0.99),
    }


def encode_by_model(bundle: Bundle, questions: Sequence[str]) -> list[EncodedQuestion]:
    """Encodes questions by the encoder of a bundle."""
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
