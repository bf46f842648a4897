"""What a shard costs by its number of passages: disk, memory, loading, and how well it is searched.

    python -m bench.sizes INDEX [INDEX ...] --questions dev-nq.jsonl.zst [--at 1000000]

Opens the first shard of each index in a process of its own, and then starts a node with it. Prints
for each: passages, megabytes on disk, seconds until the shard is open and until the node is ready
(its files in the page cache, as after a build or a pull), memory of the process beyond what it had
before (anonymous, and of files that it maps). For each `--ef`: milliseconds of a search of the
graph for 100 passages (median), and how much of the exact result it finds (recall@10).

With several sizes, the law `fixed + each * passages` is fitted to each figure (least squares), and
told at `--at` passages.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.words import memory
from winnow.bundle import default_bundle, load_bundle
from winnow.cli.questions import read_questions
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.content_node.shard.nearest import GraphIndex
from winnow.content_node.shard.segment import Vector
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.layout import shard_name
from winnow.inference.encoder import open_question_encoder
from winnow.text.tokenizer import Tokenizer

K, TOP = 100, 10
_ROUNDING = 1e-5
FITTED = ("disk_mb", "memory_mb", "mapped_mb", "open_s", "ready_s")


def shard_of(index: Path) -> Path:
    return index / shard_name(0, read_index_manifest(index).shards)


def vectors_of(questions: Path, limit: int) -> list[Vector]:
    bundle = load_bundle(default_bundle())
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special)
    asked = [each.question for each in read_questions(questions)]
    return [
        encoder.question(tokenizer.tokenise(each).ids)
        for each in asked[:: max(len(asked) // limit, 1)][:limit]
    ]


def measured(index: Path, questions: Path, limit: int, efs: list[int]) -> dict[str, Any]:
    """Of the first shard, in this process."""
    place = shard_of(index)
    asked = vectors_of(questions, limit)
    gc.collect()
    before, started = memory(), time.perf_counter()
    shard = open_shard(place, ef=efs[0])
    opened = time.perf_counter() - started
    for vector in asked:
        shard.nearest(vector, K)
    after = memory()
    stored = shard.vectors.read(np.arange(shard.rows))
    exact = [((stored - vector) ** 2).sum(axis=1) for vector in asked]
    return {
        "passages": shard.rows,
        "disk_mb": sum(each.stat().st_size for each in place.iterdir() if each.is_file()) / 1e6,
        "memory_mb": after["RssAnon"] - before["RssAnon"],
        "mapped_mb": after["RssFile"] - before["RssFile"],
        "open_s": opened,
        "searches": [searched(shard, ef, asked, exact) for ef in efs],
    }


def searched(
    shard: StoredSegment, ef: int, asked: list[Vector], exact: list[Vector]
) -> dict[str, float]:
    """How long searches take that look so wide, and what they find."""
    assert isinstance(shard.index, GraphIndex)
    graph = GraphIndex(shard.index._index, ef, shard.vectors, shard.held)  # noqa: SLF001
    spent, right = [], 0
    for vector, distances in zip(asked, exact, strict=True):
        began = time.perf_counter()
        found = graph.search(vector, K)
        spent.append((time.perf_counter() - began) * 1e3)
        # by distance: of passages that are there twice, either is right
        last = np.partition(distances, TOP - 1)[TOP - 1] + _ROUNDING
        right += sum(bool(distances[row] <= last) for row, _ in found[:TOP])
    return {"ef": ef, "ms": statistics.median(spent), "recall": right / TOP / len(asked)}


def ready(index: Path) -> float:
    """Seconds until a node with the first shard says that it is ready."""
    command = [sys.executable, "-m", "winnow", "node", "--shard", str(shard_of(index))]
    command += ["--listen", "127.0.0.1:0", "--log-format", "json", "--drain-linger", "0"]
    started = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as node:
        assert node.stderr is not None
        for line in node.stderr:
            if json.loads(line).get("event") == "ready":
                break
        else:
            raise SystemExit("the node ended before it was ready")
        spent = time.perf_counter() - started
        node.terminate()
        node.stderr.read()
    return spent


def apart(index: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own, so that nothing is there before."""
    command = [
        sys.executable,
        "-m",
        "bench.sizes",
        str(index),
        "--questions",
        str(options.questions),
    ]
    command += ["--limit", str(options.limit), "--one"]
    command += [part for ef in options.ef for part in ("--ef", str(ef))]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    found["ready_s"] = statistics.median(ready(index) for _ in range(3))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("indexes", type=Path, nargs="+", metavar="INDEX")
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=300, help="questions, evenly spread")
    parser.add_argument("--ef", type=int, action="append", help="widths of searches; 256")
    parser.add_argument("--at", type=int, default=1_000_000, help="passages to reckon up to")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.ef = options.ef or [256]  # as nodes have it by default
    if options.one:
        index = options.indexes[0]
        print(json.dumps(measured(index, options.questions, options.limit, options.ef)))
        return
    rows = [apart(index, options) for index in options.indexes]
    names = ("passages", *FITTED)
    print("  ".join(f"{name:>10}" for name in names))
    for row in rows:
        print("  ".join(f"{row[name]:10.{0 if name == 'passages' else 2}f}" for name in names))
    print(f"\n{'passages':>10}  {'ef':>10}  {'search_ms':>10}  {'recall@10':>10}")
    for row in rows:
        for each in row["searches"]:
            print(
                f"{row['passages']:10}  {each['ef']:10}  {each['ms']:10.3f}  {each['recall']:10.4f}"
            )
    if len(rows) > 1:
        print(f"\nfixed + each * passages, and at {options.at:,} passages:")
        for name in FITTED:
            sizes = [row["passages"] for row in rows]
            each, fixed = np.polyfit(sizes, [row[name] for row in rows], 1)
            at = fixed + each * options.at
            print(f"{name:>10}  {fixed:10.3f} + {each * 1e3:8.4f} per thousand   {at:10.2f}")


if __name__ == "__main__":
    main()
