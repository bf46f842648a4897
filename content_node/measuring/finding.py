"""Costs of a shard by its size: to retrieve from it, to hold it and to write it."""

import gc
import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from winnow.content_node.measuring.made_up import Vectors, write_random_shard
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.shard.memory_segment import MemoryVectors
from winnow.content_node.shard.nearest import GraphIndex, NearestIndex, build_graph
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.view import view_of
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name
from winnow.heap import trimming
from winnow.passages.encoding import TokenisedPut
from winnow.sizing.timing import relative_spread, time_runs
from winnow.sizing.units import GraphCost, ShardCost

M, EF_CONSTRUCTION, EF = 16, 200, 256
"""The defaults of `winnow index build` and `winnow node`."""
NEAREST = 100
_READ = 10
_WAYS = {
    "hybrid": RetrievalDepth(passages=_READ, candidates=NEAREST),
    "dense": RetrievalDepth(passages=_READ),
    "sparse": RetrievalDepth(passages=_READ, by_words=NEAREST),
}
"""The retrievers with the defaults of a front node."""
_WORD_WEIGHT = 0.01
_REPETITIONS = 200
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class RetrievalCost:
    """The costs of a shard and of its graph."""

    cost: ShardCost
    graph: GraphCost
    spread: tuple[float, ...]
    """Quantiles of the times of retrievals, relative to their median."""


def measure_graph(
    passages: int, vectors: Vectors, threads: int, repetitions: int = _REPETITIONS
) -> GraphCost:
    """Builds a graph in memory and searches it."""
    held = vectors.drawn(passages)
    graph = build_graph(held, M, EF_CONSTRUCTION, threads)
    index = GraphIndex(graph, EF, MemoryVectors(held))
    return _graph_cost(index, graph.index_file_size(), passages, vectors, repetitions)


def measure_shard(
    passages: int,
    texts: Sequence[TokenisedPut],
    asked: Sequence[tuple[int, ...]],
    vectors: Vectors,
    threads: int,
    repetitions: int = _REPETITIONS,
) -> RetrievalCost:
    """Writes a shard, loads it as a node does, and retrieves from it. `asked` are the tokens of
    questions.
    """
    with tempfile.TemporaryDirectory() as place:
        started = time.perf_counter()
        manifest = write_random_shard(Path(place), texts, passages, vectors, threads)
        written = time.perf_counter() - started
        before, started = _resident(), time.perf_counter()
        # exact search, which small shards use, would say nothing of a large one
        segment = open_shard(Path(place) / shard_name(0, 1), EF, exact_up_to=0)
        loaded, held = time.perf_counter() - started, _resident() - before
        questions = list(itertools.islice(_questions(asked, vectors), repetitions))
        times = {name: _times(segment, depth, questions) for name, depth in _WAYS.items()}
    graph = manifest.files[manifest.graph].bytes
    graph_cost = _graph_cost(segment.index, graph, passages, vectors, repetitions)
    disk = sum(entry.bytes for entry in manifest.files.values())
    cost = ShardCost(
        passages=passages,
        dimension=manifest.dimension,
        hybrid_ms=round(median(times["hybrid"]), 4),
        dense_ms=round(median(times["dense"]), 4),
        sparse_ms=round(median(times["sparse"]), 4),
        load_ms_each=round(1e3 * loaded / passages, 6),
        write_ms_each=round(1e3 * written * threads / passages, 4),
        memory_bytes_each=round(max((held - graph) / passages, 1.0), 1),
        disk_bytes_each=round((disk - graph) / passages, 1),
    )
    return RetrievalCost(cost, graph_cost, relative_spread([times["hybrid"]]))


def _graph_cost(
    index: NearestIndex, size: int, passages: int, vectors: Vectors, repetitions: int
) -> GraphCost:
    asked = vectors.drawn(repetitions)
    each = itertools.cycle(asked)
    searches = time_runs(lambda: index.search(next(each), NEAREST), repetitions)
    return GraphCost(
        passages=passages,
        dimension=asked.shape[1],
        search_ms=round(median(searches), 4),
        bytes_each=round(size / passages, 1),
    )


def _times(
    segment: StoredSegment, depth: RetrievalDepth, questions: Sequence[EncodedQuestion]
) -> list[float]:
    view, asked = view_of(segment), itertools.cycle(questions)
    return time_runs(lambda: retrieve(view, next(asked), depth, _WORD_WEIGHT), len(questions))


def _questions(asked: Sequence[tuple[int, ...]], vectors: Vectors) -> Iterator[EncodedQuestion]:
    for ids in itertools.cycle(asked):
        yield EncodedQuestion(
            text="?", token_ids=ids, vector=vectors.drawn(1)[0], bundle_fingerprint="made-up"
        )


def _resident() -> int:
    """The resident bytes of this process, without free bytes of its heap."""
    gc.collect()
    if trim := trimming():
        trim()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
