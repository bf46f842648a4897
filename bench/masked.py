"""The nearest of the rows that a filter lets through: by the graph, or by comparing with each.

    python bench/masked.py INDEX [--questions 50] [--k 100]

Opens the first shard of an index, and searches under masks that let random rows through. Prints for
each number of allowed rows the milliseconds (median) of walking the graph as far as is needed on
average, of comparing with every allowed row, and of what a shard does, which chooses one of them by
`content_node.shard.nearest.WALKED`; and how much of the exact result it finds (recall@10).

At the end the figure that `WALKED` stands for: how many rows are compared in the time in which the
graph finds one more, where both ways take about as long.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.content_node.shard.nearest import WALKED, GraphIndex, breadth
from winnow.content_node.shard.segment import Found
from winnow.domain.layout import shard_name

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
ALWAYS, NEVER = 0.0, float("inf")
"""How much walking costs, so that it is always done, or never."""


def timed(work: Callable[[], Found]) -> tuple[Found, float]:
    started = time.perf_counter()
    found = work()
    return found, (time.perf_counter() - started) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--k", type=int, default=100)
    options = parser.parse_args()
    shards = read_index_manifest(options.index).shards
    shard = open_shard(options.index / shard_name(0, shards), ef=256, exact_up_to=0)
    assert isinstance(shard.index, GraphIndex)
    ways = {
        name: GraphIndex(shard.index._index, 256, shard.vectors, shard.held, walked)  # noqa: SLF001
        for name, walked in (("walk", ALWAYS), ("compare", NEVER), ("shard", WALKED))
    }
    chance = np.random.default_rng(1)
    print(f"{shard.rows} rows, k = {options.k}, WALKED = {WALKED:g}")
    print(f"{'allowed':>8} {'walk':>8} {'compare':>8} {'shard':>8} {'recall@10':>10} {'ratio':>8}")
    near: list[tuple[float, float]] = []
    for share in SHARES:
        spent: dict[str, list[float]] = {name: [] for name in ways}
        recalled = 0.0
        for _ in range(options.questions):
            allowed = chance.random(shard.rows) < share
            rows = chance.integers(shard.rows, size=2)
            asked = shard.vectors.read(rows).sum(axis=0)
            asked /= max(float(np.linalg.norm(asked)), 1e-6)
            found: dict[str, Found] = {}
            for name, way in ways.items():
                found[name], milliseconds = timed(partial(way.search, asked, options.k, allowed))
                spent[name].append(milliseconds)
            right = {row for row, _ in found["compare"][:10]}
            recalled += len(right & {row for row, _ in found["shard"][:10]}) / max(len(right), 1)
        walk, compare, own = (statistics.median(spent[n]) for n in ("walk", "compare", "shard"))
        count = round(share * shard.rows)
        ratio = (walk / breadth(options.k, count, shard.rows)) / (compare / count)
        near.append((abs(walk - compare) / compare, ratio))
        print(
            f"{count:8} {walk:8.2f} {compare:8.2f} {own:8.2f} "
            f"{recalled / options.questions:10.3f} {ratio:8.2f}"
        )
    print(f"WALKED where both take as long: {min(near)[1]:.2f}")


if __name__ == "__main__":
    main()
