"""Compares graph libraries on the vectors of an index: `python bench/graph_libraries.py INDEX`.

All build one graph with the same parameters, one after the other, with one thread. Then each
question is searched in all of them, in changing order, and exactly in NumPy. Times are processor
times, so other work on the machine matters less.

Needs `pip install usearch faiss-cpu`; neither is a dependency of Winnow.
"""

import argparse
import hashlib
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import faiss
import hnswlib
import numpy as np
from numpy.typing import NDArray
from usearch.index import Index as UsearchIndex

from winnow.content_node.shard.comparing import HnswlibTable, NumpyTable

Vectors = NDArray[np.float32]
Found = tuple[NDArray[np.integer], NDArray[np.float32]]
M, EF_CONSTRUCTION = 16, 200
K = 100


class Library(Protocol):
    """A graph of one library; all searches use one thread."""

    def add(self, vectors: Vectors) -> None: ...

    def save(self, path: Path) -> None: ...

    def widen(self, ef: int) -> None: ...

    def search(self, vector: Vectors) -> Found: ...


class Hnswlib:
    def __init__(self, dimension: int, rows: int) -> None:
        self._index = hnswlib.Index(space="l2", dim=dimension)
        self._index.init_index(max_elements=rows, M=M, ef_construction=EF_CONSTRUCTION)

    def add(self, vectors: Vectors) -> None:
        self._index.add_items(vectors, np.arange(len(vectors)), num_threads=1)

    def save(self, path: Path) -> None:
        self._index.save_index(str(path))

    def widen(self, ef: int) -> None:
        self._index.set_ef(ef)

    def search(self, vector: Vectors) -> Found:
        rows, distances = self._index.knn_query(vector, k=K, num_threads=1)
        return rows[0], distances[0]


class Usearch:
    def __init__(self, dimension: int, rows: int) -> None:
        del rows
        self._index = UsearchIndex(
            ndim=dimension,
            metric="l2sq",
            dtype="f32",
            connectivity=M,
            expansion_add=EF_CONSTRUCTION,
        )

    def add(self, vectors: Vectors) -> None:
        self._index.add(np.arange(len(vectors)), vectors, threads=1)

    def save(self, path: Path) -> None:
        self._index.save(str(path))

    def widen(self, ef: int) -> None:
        self._index.expansion_search = ef

    def search(self, vector: Vectors) -> Found:
        found = self._index.search(vector, K, threads=1)
        return found.keys, found.distances


class Faiss:
    def __init__(self, dimension: int, rows: int) -> None:
        del rows
        faiss.omp_set_num_threads(1)
        self._index = faiss.IndexHNSWFlat(dimension, M)
        self._index.hnsw.efConstruction = EF_CONSTRUCTION

    def add(self, vectors: Vectors) -> None:
        self._index.add(vectors)

    def save(self, path: Path) -> None:
        faiss.write_index(self._index, str(path))

    def widen(self, ef: int) -> None:
        self._index.hnsw.efSearch = ef

    def search(self, vector: Vectors) -> Found:
        distances, rows = self._index.search(vector[None], K)
        return rows[0], distances[0]


LIBRARIES: dict[str, Callable[[int, int], Library]] = {
    "hnswlib": Hnswlib,
    "usearch": Usearch,
    "faiss": Faiss,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", type=Path, help="directory of an index")
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--widths", type=int, nargs="+", default=[128, 256])
    options = parser.parse_args()
    vectors = read_vectors(options.index)
    graphs = {name: build(name, vectors) for name in LIBRARIES}
    for name in graphs:
        small = vectors[:2_000]
        same = checksum(name, small) == checksum(name, small)
        print(f"{name}: two builds are equal: {same}")
    questions = midpoints(vectors, options.questions)
    for ef in options.widths:
        for graph in graphs.values():
            graph.widen(ef)
        compare(graphs, vectors, questions, ef)
    for rows in (2_000, 10_000, 20_000, 50_000):
        time_exact(vectors[:rows], questions[:50])


def read_vectors(index: Path) -> Vectors:
    """Reads the vectors of all shards, [passages, dimension]."""
    found: list[Vectors] = []
    for store in sorted(index.glob("shard-*/passages.sqlite")):
        connection = sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        rows = connection.execute("SELECT vector FROM passages ORDER BY row")
        found += [np.frombuffer(vector, "<f4") for (vector,) in rows]
    return np.stack(found).astype(np.float32)


def midpoints(vectors: Vectors, count: int) -> Vectors:
    """Returns vectors halfway between two passages: near some, equal to none."""
    chosen = np.random.default_rng(0).integers(0, len(vectors), (count, 2))
    middle = vectors[chosen[:, 0]] + vectors[chosen[:, 1]]
    halfway: Vectors = middle / np.linalg.norm(middle, axis=1, keepdims=True)
    return halfway


def build(name: str, vectors: Vectors) -> Library:
    graph = LIBRARIES[name](vectors.shape[1], len(vectors))
    before, started = resident(), time.process_time()
    graph.add(vectors)
    seconds, megabytes = time.process_time() - started, (resident() - before) / 1e6
    print(f"{name}: {len(vectors):,} vectors in {seconds:.1f} s, {megabytes:.0f} MB", flush=True)
    return graph


def checksum(name: str, vectors: Vectors) -> str:
    graph = LIBRARIES[name](vectors.shape[1], len(vectors))
    graph.add(vectors)
    with tempfile.TemporaryDirectory() as directory:
        graph.save(Path(directory) / "graph")
        return hashlib.sha256((Path(directory) / "graph").read_bytes()).hexdigest()


def compare(graphs: dict[str, Library], vectors: Vectors, questions: Vectors, ef: int) -> None:
    exact = HnswlibTable(vectors, np.arange(len(vectors)))
    times: dict[str, list[float]] = {name: [] for name in graphs}
    near, far, bits = dict.fromkeys(graphs, 0), dict.fromkeys(graphs, 0), dict.fromkeys(graphs, 0)
    for number, question in enumerate(questions):
        rows, distances = exact.nearest(question, K)
        known = dict(zip(rows.tolist(), distances.tolist(), strict=True))
        first = set(rows[np.argsort(distances, kind="stable")[:10]].tolist())
        for name in rotated(list(graphs), number):
            started = time.thread_time()
            found, own = graphs[name].search(question)
            times[name].append(1e3 * (time.thread_time() - started))
            near[name] += len(first & set(found[:10].tolist()))
            far[name] += len(known.keys() & set(found.tolist()))
            pairs = zip(found.tolist(), own.tolist(), strict=True)
            bits[name] += sum(known.get(row) == distance for row, distance in pairs)
    for name in graphs:
        p50, p99 = np.quantile(times[name], [0.5, 0.99])
        print(
            f"ef {ef}, {name}: {p50:.2f} ms p50, {p99:.2f} ms p99, recall@10 "
            f"{near[name] / (10 * len(questions)):.4f}, recall@{K} "
            f"{far[name] / (K * len(questions)):.4f}, distances equal to hnswlib's "
            f"{bits[name] / far[name]:.2f}",
            flush=True,
        )


def rotated(names: Sequence[str], by: int) -> Sequence[str]:
    by %= len(names)
    return [*names[by:], *names[:by]]


def time_exact(vectors: Vectors, questions: Vectors) -> None:
    rows = np.arange(len(vectors))
    for table in (HnswlibTable(vectors, rows), NumpyTable(vectors, rows)):
        times = []
        for question in questions:
            started = time.thread_time()
            table.nearest(question, K)
            times.append(1e3 * (time.thread_time() - started))
        name = type(table).__name__
        print(f"exact, {name}, {len(rows):,} vectors: {np.median(times):.2f} ms p50", flush=True)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4_096


if __name__ == "__main__":
    main()
