"""What merges of a shard cost, and what is left of the graph's recall after many of them.

    python bench/merges.py --shard INDEX/shard-00000-of-00001 --rounds 4 [--share 0.1]

A copy of the shard is written to: half of the writes put passages anew under their ids, a third
puts new ones, the others delete. After each round it is merged as a node does, in another process.
Prints a table: seconds of each stage, the process' memory, recall@10 by the graph alone, and the
time in which a node opens the result.
"""

import argparse
import random
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from winnow.content_node.indexing.contents import recall_at
from winnow.content_node.live.entry import Logged, PackedPassage
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.opening import open_log
from winnow.content_node.merging.child import MergeChild
from winnow.content_node.merging.tidying import tidy
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.shard.nearest import ExactIndex, GraphIndex

_ASKED, _K, _EF = 300, 10, 256
_AT_ONCE = 500
_NOISE = 0.3
"""How far a vector is from the one it is made like, as a share of its length."""
_ROWS = """
SELECT id, title, text, metadata, title_tokens, text_tokens, text_offsets, vector FROM passages
WHERE row = ?
"""


@dataclass
class Feeding:
    """Writes like those that a live index gets."""

    shard: StoredSegment
    log: WriteLog
    rng: random.Random
    number: int = 0

    def feed(self, count: int) -> None:
        """Appends so many writes about different passages."""
        rows = self.rng.sample(self.shard.store.numbers().tolist(), count)
        path = self.shard.files[0].path.parent / self.shard.manifest.store
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as store:
            for start in range(0, count, _AT_ONCE):
                last = self.log.last + 1
                some = rows[start : start + _AT_ONCE]
                writes = [self._write(store, row, last + n) for n, row in enumerate(some)]
                self.log.append(writes)
                self.log.acknowledge()

    def _write(self, store: sqlite3.Connection, row: int, sequence: int) -> Logged:
        identifier, *values = store.execute(_ROWS, (row,)).fetchone()
        put = PackedPassage(*values)
        kind = self.rng.random()
        if kind < 1 / 6:
            return Logged(sequence, identifier, None, None, put.words)
        put = replace(put, vector=self._like(put.vector))
        if kind < 1 / 2:
            self.number += 1
            return Logged(sequence, f"fed {self.number}", None, put, None)
        return Logged(sequence, identifier, None, put, put.words)

    def _like(self, vector: bytes) -> bytes:
        values = np.frombuffer(vector, "<f4")
        noise = np.random.default_rng(self.rng.getrandbits(32)).standard_normal(len(values))
        moved = values + _NOISE * noise / np.linalg.norm(noise)
        return bytes((moved / np.linalg.norm(moved)).astype("<f4"))


def recall(shard: StoredSegment, rng: random.Random) -> float:
    """Of the graph alone, for midpoints of two passages: like questions, they lie beside them."""
    assert isinstance(shard.index, GraphIndex)
    rows = shard.store.numbers()
    vectors = shard.store.vectors(shard.manifest.dimension)
    exact = ExactIndex(vectors, rows)
    by_graph, by_hand = [], []
    for _ in range(_ASKED):
        asked = vectors[rng.randrange(len(rows))] + vectors[rng.randrange(len(rows))]
        asked /= np.linalg.norm(asked)
        by_graph.append(shard.index.walk(asked, _K) or [])
        by_hand.append(exact.search(asked, _K))
    return recall_at(by_graph, by_hand)


def merged(directory: Path, base: Path, upto: int) -> tuple[Path, dict[str, float]]:
    """The next generation, and the seconds of each stage."""
    began: list[tuple[str, float]] = [("start", time.perf_counter())]
    child = MergeChild(base, directory, upto, lambda s: began.append((s, time.perf_counter())))
    done = child.run()
    ends = [*(at for _, at in began[1:]), time.perf_counter()]
    return Path(done.directory), {
        name: end - at for (name, at), end in zip(began, ends, strict=True)
    }


def rounds(directory: Path, count: int, share: float, rng: random.Random) -> Iterator[list[str]]:
    """A row of the table for the shard as it was, and one after each merge."""
    shard, opening = timed_opening(directory)
    log = open_log(directory)
    yield [*_figures(shard, rng), *["-"] * 6, f"{opening:.1f}"]
    feeding = Feeding(shard, log, rng)
    for _ in range(count):
        feeding.feed(int(shard.manifest.passages * share))
        path, stages = merged(directory, shard.files[0].path.parent, log.last)
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        del shard, feeding.shard  # two graphs at a time are enough
        shard, opening = timed_opening(path)
        feeding.shard = shard
        log.trim(log.last)
        tidy(directory, log.last)
        spent = [f"{stages[name]:.1f}" for name in ("passages", "words", "graph", "verifying")]
        total = f"{sum(stages.values()):.1f}"
        yield [*_figures(shard, rng), *spent, total, f"{memory:,.0f}", f"{opening:.1f}"]
    log.close()


def timed_opening(directory: Path) -> tuple[StoredSegment, float]:
    """A generation as a node has it, and the seconds that it took to open."""
    started = time.perf_counter()
    shard = open_shard(directory, _EF, exact_up_to=0)
    return shard, time.perf_counter() - started


def _figures(shard: StoredSegment, rng: random.Random) -> list[str]:
    manifest = shard.manifest
    return [f"{manifest.passages:,}", f"{manifest.rows:,}", f"{recall(shard, rng):.4f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shard", type=Path, required=True, help="Directory of a shard.")
    parser.add_argument("--rounds", type=int, default=4, help="Merges.")
    parser.add_argument("--share", type=float, default=0.1, help="Writes per passage and round.")
    parser.add_argument("--seed", type=int, default=1, help="Of the writes.")
    given = parser.parse_args()
    print(
        "| passages | rows | recall@10 | passages s | words s | graph s | verifying s | merge s "
        "| memory MiB | opening s |"
    )
    print("|" + "---|" * 10)
    with tempfile.TemporaryDirectory(prefix="winnow-merges-") as place:
        copy = Path(shutil.copytree(given.shard, Path(place) / "shard"))
        for row in rounds(copy, given.rounds, given.share, random.Random(given.seed)):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
