"""Measures the costs of a shard by its size: retrieval, memory, disk space and writing."""

import gc
import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from winnow.content_node.measuring.synthetic import RandomVectors, write_synthetic_shard
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.shard.memory_segment import MemoryVectors
from winnow.content_node.shard.nearest import GraphIndex, NearestIndex, build_graph
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.view import view_of
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name
from winnow.heap import trim_function
from winnow.passages.encoding import TokenisedPut
from winnow.sizing.timing import relative_spread, time_runs
from winnow.sizing.units import GraphCost, ShardCost

M, EF_CONSTRUCTION, EF = 16, 200, 256
"""The defaults of `winnow index build`, and of `winnow node` for shards without token vectors."""
NEAREST = 100
_PASSAGES_READ = 10
_DEPTHS = {
    "hybrid": RetrievalDepth(passages=_PASSAGES_READ, candidates=NEAREST),
    "dense": RetrievalDepth(passages=_PASSAGES_READ),
    "sparse": RetrievalDepth(passages=_PASSAGES_READ, by_words=NEAREST),
}
"""Retrieval depth of each retriever, with the defaults of a front node."""
_WORD_WEIGHT = 0.01
_REPETITIONS = 200
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class MeasuredShard:
    """Costs of a shard and of its graph."""

    cost: ShardCost
    graph: GraphCost
    spread: tuple[float, ...]
    """Quantiles of the retrieval times, each divided by the median."""


def measure_graph(
    passages: int, vectors: RandomVectors, threads: int, repetitions: int = _REPETITIONS
) -> GraphCost:
    """Builds a graph in memory and measures searches."""
    drawn = vectors.draw(passages)
    graph = build_graph(drawn, M, EF_CONSTRUCTION, threads)
    index = GraphIndex(graph, EF, MemoryVectors(drawn))
    return _graph_cost(index, graph.index_file_size(), passages, vectors, repetitions)


def measure_shard(
    passages: int,
    texts: Sequence[TokenisedPut],
    question_tokens: Sequence[tuple[int, ...]],
    vectors: RandomVectors,
    threads: int,
    repetitions: int = _REPETITIONS,
) -> MeasuredShard:
    """Measures writing a shard, loading it and retrieving from it.

    `question_tokens` are the tokens of each question.
    """
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        started = time.perf_counter()
        manifest = write_synthetic_shard(directory, texts, passages, vectors, threads)
        write_seconds = time.perf_counter() - started
        before, started = _resident_bytes(), time.perf_counter()
        # small shards are searched exactly by default, which does not apply to large ones
        segment = open_shard(directory / shard_name(0, 1), EF, exact_up_to=0)
        load_seconds, memory = time.perf_counter() - started, _resident_bytes() - before
        questions = list(itertools.islice(_questions(question_tokens, vectors), repetitions))
        times = {
            name: _time_retrievals(segment, depth, questions) for name, depth in _DEPTHS.items()
        }
    graph_bytes = manifest.files[manifest.vector_file].bytes
    graph_cost = _graph_cost(segment.index, graph_bytes, passages, vectors, repetitions)
    disk = sum(entry.bytes for entry in manifest.files.values())
    cost = ShardCost(
        passages=passages,
        dimension=manifest.dimension,
        hybrid_ms=round(median(times["hybrid"]), 4),
        dense_ms=round(median(times["dense"]), 4),
        sparse_ms=round(median(times["sparse"]), 4),
        load_ms_each=round(1e3 * load_seconds / passages, 6),
        write_ms_each=round(1e3 * write_seconds * threads / passages, 4),
        memory_bytes_each=round(max((memory - graph_bytes) / passages, 1.0), 1),
        disk_bytes_each=round((disk - graph_bytes) / passages, 1),
    )
    return MeasuredShard(cost, graph_cost, relative_spread([times["hybrid"]]))


def _graph_cost(
    index: NearestIndex, size: int, passages: int, vectors: RandomVectors, repetitions: int
) -> GraphCost:
    questions = vectors.draw(repetitions)
    each = itertools.cycle(questions)
    searches = time_runs(lambda: index.search(next(each), NEAREST), repetitions)
    return GraphCost(
        passages=passages,
        dimension=questions.shape[1],
        search_ms=round(median(searches), 4),
        bytes_each=round(size / passages, 1),
    )


def _time_retrievals(
    segment: StoredSegment, depth: RetrievalDepth, questions: Sequence[EncodedQuestion]
) -> list[float]:
    view, each = view_of(segment), itertools.cycle(questions)
    return time_runs(lambda: retrieve(view, next(each), depth, _WORD_WEIGHT), len(questions))


def _questions(
    question_tokens: Sequence[tuple[int, ...]], vectors: RandomVectors
) -> Iterator[EncodedQuestion]:
    for ids in itertools.cycle(question_tokens):
        yield EncodedQuestion(
            text="?", token_ids=ids, vector=vectors.draw(1)[0], bundle_fingerprint="made-up"
        )


def _resident_bytes() -> int:
    """Returns the resident memory of this process, without the free part of its heap."""
    gc.collect()
    if trim := trim_function():
        trim()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
