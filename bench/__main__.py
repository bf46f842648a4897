"""Runs a benchmark: `python -m bench NAME [flags]`; `python -m bench NAME --help` lists its flags.

Exit codes: 0 if every criterion holds, 1 if one fails, 3 if none fails but one cannot be judged
from the measurements.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from winnow import signals

BENCHMARKS = {
    "against": ("bench.against", "compare the processor time of an answer with another checkout"),
    "corpus": ("bench.corpus", "write the passages for measurements on real text"),
    "crashes": ("bench.crashes.run", "kill a shard while it takes writes, and check its contents"),
    "documents": ("bench.documents.run", "measure answers from documents of eight formats"),
    "fairness": ("bench.fairness", "measure a polite client while greedy clients send load"),
    "faults": ("bench.faults.scenarios", "kill, stop and overload the nodes of a cluster"),
    "feeding": ("bench.feeding", "measure the rate of feeding, and its effect on questions"),
    "feeding-cost": ("bench.feeding_cost", "measure the processor time of feeding"),
    "heads": ("bench.heads.run", "measure heads on a shared encoder"),
    "hostile": ("bench.hostile.scenarios", "run attacks of hostile clients on a cluster"),
    "indexes": ("bench.indexes", "compare the memory of many indexes with that of one"),
    "late": ("bench.late", "measure scoring of candidates by late interaction"),
    "moves": ("bench.moves", "move shards under questions and writes, and kill nodes"),
    "quotas": ("bench.quotas.run", "measure tenants beside one beyond its quota"),
    "reading": ("bench.reading.run", "compare reading and reranking with other libraries"),
    "rebuilds": ("bench.rebuilds", "rebuild an index under questions and writes, with kills"),
    "sizes": ("bench.sizes", "extrapolate accuracy to a larger index"),
    "soak": ("bench.soak", "check that the memory of content nodes does not grow under load"),
    "state-bits": ("bench.state_bits", "measure the accuracy of states of fewer bits"),
    "state-times": ("bench.state_times", "measure loading and reading of passages with states"),
    "tails": ("bench.tails", "compare simulated latencies with those of clusters"),
    "tenants": ("bench.tenants.run", "measure questions and deletion of tenants in one shard"),
    "words": ("bench.words", "measure the time and the recall of searches by words"),
}
"""Module and help text of each benchmark. A module has the functions `add_arguments` and `run`."""


def main(arguments: Sequence[str]) -> int:
    """Runs the benchmark that the first argument names; returns the exit code."""
    lines = "\n".join(f"  {name:12} {summary}" for name, (_, summary) in BENCHMARKS.items())
    name_parser = _parser("python -m bench", f"{__doc__}\nBenchmarks:\n{lines}")
    name_parser.add_argument(
        "name", choices=BENCHMARKS, metavar="NAME", help="name of the benchmark"
    )
    selected, _ = name_parser.parse_known_args(arguments[:1])
    benchmark = importlib.import_module(BENCHMARKS[selected.name][0])
    parser = _parser(f"python -m bench {selected.name}", benchmark.__doc__)
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    benchmark.add_arguments(parser)
    options = parser.parse_args(arguments[1:])
    signals.end_on_signals()
    return int(benchmark.run(options))


def _parser(program: str, description: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=program,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
