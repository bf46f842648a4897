"""How long the states of a passage take to read, from the disk and from memory.

    python bench/cold_states.py SHARD [--rows 300] [--seed 1]

SHARD is the directory of a shard with states (`winnow index states`). Reads the states of rows of
chance, one at a time: once after the system was told to forget the file's pages, and once more at
once. Prints the median, the 95th percentile and the longest of both, in milliseconds, and the
median of bytes. Needs a system with `posix_fadvise`; pages that another process maps are not
forgotten.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import DATA, open_states_manifest


def forget(path: Path) -> None:
    """Has the system drop what it keeps of a file in memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())  # pages that were not written yet would stay
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(states: StateFile, row: int) -> float:
    """Milliseconds of a read."""
    started = time.perf_counter()
    states.read(row)
    return (time.perf_counter() - started) * 1e3


def held(states: StateFile, seed: int, most: int) -> dict[int, int]:
    """Rows of chance that hold states, and how many bytes these have."""
    rows = list(range(states.rows))
    random.Random(seed).shuffle(rows)
    found: dict[int, int] = {}
    for row in rows:
        if len(found) == most:
            break
        own = states.read(row)
        if own is not None:
            found[row] = len(own.packed())
    return found


def spread(values: Sequence[float]) -> dict[str, float]:
    p50, p95 = np.percentile(values, [50, 95])
    return {"p50": round(p50, 3), "p95": round(p95, 3), "longest": round(max(values), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shard", type=Path, help="directory of a shard with states")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    manifest, _ = open_states_manifest(options.shard)
    states = StateFile.beside(options.shard, manifest)
    rows = held(states, options.seed, options.rows)
    if not rows:
        parser.error(f"{options.shard} has no states")
    cold, warm = [], []
    for row in rows:
        forget(options.shard / DATA)
        cold.append(timed(states, row))
        warm.append(timed(states, row))
    size = int(np.median(list(rows.values())))
    print(json.dumps({"cold": spread(cold), "warm": spread(warm), "bytes": size}))


if __name__ == "__main__":
    main()
