"""Measures the processor time of feeding passages: puts, work in the background, and a merge.

Opens a copy of INDEX in this process, for reading and writing. The time of the merge includes that
of the process that merges.
"""

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from winnow import Index
from winnow.cli.output import console as open_console
from winnow.cli.output import print_json, table
from winnow.client import PassageFields
from winnow.passages.rows import Row, read_rows

_BATCH = 20
"""Passages of a request."""
_IDLE_SECONDS, _IDLE_SHARE = 1.0, 0.08
"""The process is idle if it uses less than this share of a core for this time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--index", type=Path, required=True, help="directory of the index")
    parser.add_argument("--passages", type=Path, required=True, help="file of passages to feed")
    parser.add_argument("--limit", type=int, default=200, help="number of passages to feed")


def run(options: argparse.Namespace) -> int:
    """Prints the processor time in milliseconds for each passage."""
    rows = (row for row in read_rows(options.passages) if isinstance(row, Row))
    passages: list[PassageFields] = [
        {"id": f"fed {number}", "title": row.passage.title, "text": row.passage.text}
        for number, row in enumerate(islice(rows, options.limit))
    ]
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(options.index, Path(directory) / "index"))
        seconds = _measure(copy, passages)
    costs = {name: each * 1e3 / len(passages) for name, each in seconds.items()}
    if options.json:
        print_json(costs)
    else:
        lines = [[name, f"{cost:.1f}"] for name, cost in costs.items()]
        open_console().print(table(("step", "processor time, ms a passage"), lines))
    return 0


def _measure(index: Path, passages: Sequence[PassageFields]) -> dict[str, float]:
    """Returns the processor time of each step in seconds."""
    with Index.open(index, writable=True) as opened:
        opened.put([{"id": "first", "title": "", "text": "Opens the encoder."}])
        _wait_until_idle()
        began = _processor_seconds()
        for start in range(0, len(passages), _BATCH):
            opened.put(passages[start : start + _BATCH])
        put = _processor_seconds()
        background = _wait_until_idle()
        opened.merge()
        merged = _processor_seconds()
    return {
        "put": put - began,
        "background": background - put,
        "merge": merged - background,
        "all": merged - began,
    }


def _wait_until_idle() -> float:
    """Waits until this process is idle; returns its processor time in seconds."""
    last = _processor_seconds()
    while True:
        time.sleep(_IDLE_SECONDS)
        now = _processor_seconds()
        if now - last < _IDLE_SECONDS * _IDLE_SHARE:
            return now
        last = now


def _processor_seconds() -> float:
    """Returns the processor time of this process and of its ended children, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
