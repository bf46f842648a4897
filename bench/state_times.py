"""Measures the processor time of loading and reading passages of a shard that has states.

    python -m bench state-times --shard my-index/shard-00000-of-00001

Loading reads and checks the states on disk. Reading runs the upper layers of the default bundle's
reader, with a question whose own states are cached. One thread does all, passage after passage.
"""

import argparse
import time
from pathlib import Path

from bench.quantiles import nearest_rank
from winnow.bundle import load_bundle
from winnow.cli.output import console as open_console
from winnow.cli.output import print_json, table
from winnow.content_node.shard import open_shard
from winnow.domain.passage import Hit
from winnow.packaged import default_bundle
from winnow.reading import open_reader
from winnow.text.tokenizer import Tokenizer

_EF = 64
_QUESTION = "who wrote the first book about this subject"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shard", type=Path, required=True, help="directory of the shard")
    parser.add_argument("--limit", type=int, default=300, help="number of passages")


def run(options: argparse.Namespace) -> int:
    """Prints quantiles of both times."""
    bundle = load_bundle(default_bundle())
    manifest = bundle.manifest
    segment = open_shard(
        options.shard, _EF, lower_layers_fingerprint=manifest.lower_layers_fingerprint
    )
    states = segment.states
    if states is None:
        raise SystemExit(f"{options.shard} has no states of the default bundle")
    tokenizer = Tokenizer(bundle.tokenizer)
    reader = open_reader(bundle, tokenizer.special)
    question = tokenizer.tokenise(_QUESTION).ids
    hit = Hit(row=0, passage_id="", distance=0.0, hybrid_distance=0.0)
    rows = segment.store.row_numbers().tolist()
    rows = rows[:: max(len(rows) // options.limit, 1)][: options.limit]
    times: dict[str, list[float]] = {"load": [], "read": []}
    for number in range(2):  # the first time, files are cached
        for row in rows:
            began = time.thread_time()
            states.load(row)
            loaded = time.thread_time()
            stored = segment.load(row)
            reading = time.thread_time()
            reader.read(question, stored, hit, manifest.reader.max_answer_tokens)
            if number:
                times["load"].append((loaded - began) * 1e3)
                times["read"].append((time.thread_time() - reading) * 1e3)
    result = [
        {
            "what": what,
            "p50, ms": nearest_rank(own, 0.5),
            "mean, ms": sum(own) / len(own),
            "p95, ms": nearest_rank(own, 0.95),
        }
        for what, own in times.items()
    ]
    if options.json:
        print_json(result)
    else:
        lines = [
            [str(row["what"]), *(f"{row[key]:.4g}" for key in list(row)[1:])] for row in result
        ]
        open_console().print(table(tuple(result[0]), lines))
    return 0
