"""The command line of the simulation."""

import argparse
import sys
from collections import Counter

from simulation import fixtures
from simulation.mutations import MUTATIONS
from simulation.plan import make_plan
from simulation.running import Result, run_plan


def run(arguments: list[str]) -> int:
    """Runs seeds; returns 0, or 1 if one of them has found a violation."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="Number of seeds to run.")
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    parser.add_argument("--timeline", action="store_true", help="Print every message.")
    parser.add_argument("--mutations", action="store_true", help="Find deliberate errors.")
    parser.add_argument("--only", default="", help="Run only mutations with this text.")
    options = parser.parse_args(arguments)
    if options.mutations:
        return _find_mutations(options.first, options.seeds, options.only)
    total: Counter[str] = Counter()
    failed = []
    try:
        for seed in range(options.first, options.first + options.seeds):
            result = run_plan(make_plan(seed))
            _count(total, result)
            if options.timeline:
                _say("\n".join(result.timeline))
            if result.violations:
                failed.append(seed)
                _say(f"seed {seed}: {result.violations[0]}")
                _say("\n".join(f"    {each}" for each in result.violations[1:6]))
    finally:
        fixtures.remove()
    _say(_summary(total))
    return int(bool(failed))


def _find_mutations(first: int, seeds: int, only: str) -> int:
    """Runs each mutation until a seed finds it; returns 0 if all were found."""
    missed = 0
    try:
        for description in (each for each in MUTATIONS if only in each):
            found = None
            for seed in range(first, first + seeds):
                with MUTATIONS[description]():
                    result = run_plan(make_plan(seed))
                if result.violations:
                    found = f"seed {seed}: {result.violations[0]}"
                    break
            missed += found is None
            _say(f"{description}\n    {found or 'NOT FOUND'}")
    finally:
        fixtures.remove()
    return int(missed > 0)


def _count(total: Counter[str], result: Result) -> None:
    total["seeds"] += 1
    total["violations"] += bool(result.violations)
    total["simulated seconds"] += int(result.simulated_seconds)
    total["milliseconds"] += int(result.real_seconds * 1e3)
    for name in ("events", "messages", "calls", "failed_calls"):
        total[name] += getattr(result, name)
    for kind, count in result.faults.items():
        total[f"fault: {kind}"] += count


def _summary(total: Counter[str]) -> str:
    return "\n".join(f"{name:30} {count:12,}" for name, count in total.items())


def _say(text: str) -> None:
    if text:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
