"""Runs a benchmark: `python -m bench NAME [flags]`; `python -m bench NAME --help` lists its flags.

Exits with 0 if every promise is kept, with 1 if one is broken, and with 3 if none is broken but
one cannot be judged.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from winnow import signals

BENCHMARKS = {
    "corpus": ("bench.corpus", "write the passages that figures on real text are measured on"),
    "crashes": ("bench.crashes.run", "kill a shard that is written to, and check what it holds"),
    "fairness": ("bench.fairness", "run one polite client beside greedy clients"),
    "faults": ("bench.faults.scenarios", "kill, stop and overload the nodes of a cluster"),
    "feeding": ("bench.feeding", "compare questions with and without passages being fed"),
    "heads": ("bench.heads.run", "measure heads on a shared encoder"),
    "hostile": ("bench.hostile.scenarios", "attack a cluster by hostile clients"),
    "overhead": ("bench.overhead", "compare an answer with the bare models on the same work"),
    "soak": ("bench.soak", "watch the memory of nodes under load for an hour"),
    "txtai": ("bench.txtai", "run two of the faults on a cluster of txtai"),
}
"""The module of each benchmark, with its functions `add_arguments` and `run`, and its help."""


def main(arguments: Sequence[str]) -> int:
    """Runs the benchmark that the first argument names; returns the exit code."""
    listed = "\n".join(f"  {name:10} {about}" for name, (_, about) in BENCHMARKS.items())
    chooser = _parser("python -m bench", f"{__doc__}\nBenchmarks:\n{listed}")
    chooser.add_argument("name", choices=BENCHMARKS, metavar="NAME", help="name of the benchmark")
    chosen, _ = chooser.parse_known_args(arguments[:1])
    benchmark = importlib.import_module(BENCHMARKS[chosen.name][0])
    parser = _parser(f"python -m bench {chosen.name}", benchmark.__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
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
