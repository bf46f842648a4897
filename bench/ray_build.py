"""How fast workers of Ray encode, beside threads of one process.

    python bench/ray_build.py --passages FILE [--limit 4000] [--rounds 3] [--workers 2]

Interleaved in one run: the encoding stage of a build with so many threads, then with as many
workers on a Ray cluster of this machine. A stage lasts from the first worker that is ready to the
last vector that is stored; starting Ray is told apart.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

from winnow.bundle import Bundle, default_bundle, load_bundle
from winnow.content_node.indexing.engine import ENCODING, Engine, LocalEngine
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.indexing.workers.engine import RayEngine
from winnow.passages.rows import BadRow, Row, read_rows
from winnow.text.tokenizer import Tokenizer


class Watch:
    """A build's progress, timed."""

    def __init__(self) -> None:
        self.created = self.begun = self.ended = time.perf_counter()

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        if stage == ENCODING:
            self.begun = time.perf_counter()

    def advance(self, steps: int) -> None:
        self.ended = time.perf_counter()

    def bad_row(self, row: BadRow) -> None:
        raise AssertionError(row)

    def kept(self, directory: Path) -> None:
        raise AssertionError(directory)


def stage(path: Path, rows: list[Row], tokenizer: Tokenizer) -> Staging:
    staging = Staging(path)
    for row in rows:
        title, text = (tokenizer.tokenise(t) for t in (row.passage.title, row.passage.text))
        staging.add(row, title, text, 0)
    staging.note(staged=True)
    return staging


def timed(engine: Engine, rows: list[Row], bundle: Bundle) -> Watch:
    with tempfile.TemporaryDirectory() as directory:
        staging = stage(Path(directory) / "staging.sqlite", rows, Tokenizer(bundle.tokenizer))
        watch = Watch()
        engine.encode(staging, bundle, watch)
        total, encoded = staging.counts()
        assert encoded == total
        staging.close()
    return watch


def some(source: Path, limit: int) -> list[Row]:
    rows = [row for row in read_rows(source) if isinstance(row, Row)]
    return rows[:: max(len(rows) // limit, 1)][:limit]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    bundle, rows = load_bundle(default_bundle()), some(options.passages, options.limit)
    local, spread, starts = [], [], []
    for number in range(options.rounds):
        threads = timed(LocalEngine(options.workers), rows, bundle)
        workers = timed(RayEngine(options.workers), rows, bundle)
        local.append(threads.ended - threads.begun)
        spread.append(workers.ended - workers.begun)
        starts.append(workers.begun - workers.created)
        print(
            f"round {number + 1}: threads {local[-1]:.1f} s, workers {spread[-1]:.1f} s, "
            f"starting Ray {starts[-1]:.1f} s",
            flush=True,
        )
    ratios = [s / t for s, t in zip(spread, local, strict=True)]
    print(
        json.dumps(
            {
                "passages": len(rows),
                "workers": options.workers,
                "threads_seconds": round(median(local), 2),
                "workers_seconds": round(median(spread), 2),
                "ratio": round(median(ratios), 3),
                "ratios": [round(each, 3) for each in ratios],
                "starting_seconds": round(median(starts), 1),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
