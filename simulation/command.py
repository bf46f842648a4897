"""Runs a simulated cluster for many seeds. A seed that fails is shortened and explained."""

import argparse
import sys
from collections import Counter
from dataclasses import replace

from simulation import fixtures
from simulation.mutations import MUTATIONS
from simulation.plan import Plan, Shape, make_plan
from simulation.running import Result, run_plan
from simulation.shrinking import shrink

_SHOWN_LINES = 80
"""Lines of the timeline before the first violation that are shown."""
_SHOWN_VIOLATIONS = 5
_UNINTERESTING = ("ListShards", "GetWordCounts", "status 100")
"""Parts of lines that the shown timeline leaves out: regular messages."""


def run(arguments: list[str]) -> int:
    """Runs what the arguments ask for; returns the exit code: 0, or 1 after a violation."""
    options = _parser().parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    shape = Shape(shards=3, replicas=2) if options.large else None
    try:
        if options.mutations:
            return _find_mutations(seeds, options.only)
        return _run_seeds(seeds, shape, digests=options.digests, max_runs=options.shrink)
    finally:
        fixtures.remove()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="Number of seeds to run.")
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    parser.add_argument(
        "--shrink", type=int, default=50, help="Runs to shorten a seed that fails; 0 disables it."
    )
    parser.add_argument(
        "--digests", action="store_true", help="Print the hash of each seed's timeline."
    )
    parser.add_argument(
        "--large", action="store_true", help="Simulate 3 shards with 2 replicas with every seed."
    )
    parser.add_argument(
        "--mutations", action="store_true", help="Run deliberate errors until a seed finds them."
    )
    parser.add_argument(
        "--only", default="", help="Run only mutations whose description has one of these texts."
    )
    return parser


def _run_seeds(seeds: range, shape: Shape | None, *, digests: bool, max_runs: int) -> int:
    total = Counter[str]()
    for seed in seeds:
        result = run_plan(make_plan(seed, shape))
        _count(total, result)
        if digests:
            _say(f"seed {seed}: {result.digest}")
        if result.violations:
            _say(f"seed {seed} failed: {result.violations[0]}")
            _explain(_shortened(result, max_runs))
    _say(_summary(total))
    return int(total["seeds that failed"] > 0)


def _shortened(result: Result, max_runs: int) -> Result:
    """Returns the result of the shortest plan that still fails."""
    plan, last = result.plan, result

    def with_steps(steps: object) -> Plan:
        return replace(plan, steps=tuple(steps))  # type: ignore[arg-type]

    def fails(steps: object) -> bool:
        nonlocal last
        tried = run_plan(with_steps(steps))
        if tried.violations:
            last = tried
        return bool(tried.violations)

    shrink(plan.steps, fails, max_runs)
    return last


def _explain(result: Result) -> None:
    shape = result.plan.shape
    _say(f"shortest plan, with {shape}:")
    for step in result.plan.steps:
        _say(f"    {step}")
    lines = [line for line in result.timeline if not any(part in line for part in _UNINTERESTING)]
    first = next(number for number, line in enumerate(lines) if "VIOLATION" in line)
    _say("timeline before the violation:")
    for line in lines[max(first - _SHOWN_LINES, 0) : first]:
        _say(f"    {line}")
    _say("violations:")
    for violation in result.violations[:_SHOWN_VIOLATIONS]:
        _say(f"    {violation}")


def _find_mutations(seeds: range, only: str) -> int:
    """Runs each mutation until a seed finds it; returns 0 if all were found."""
    chosen = [each for each in MUTATIONS if any(part in each for part in only.split(","))]
    missed = 0
    for description in chosen:
        found = _find(description, seeds)
        missed += found is None
        _say(f"{description}\n    {found or 'not found'}")
    _say(f"found {len(chosen) - missed} of {len(chosen)} mutations with {len(seeds)} seeds")
    return int(missed > 0)


def _find(description: str, seeds: range) -> str | None:
    """Returns how a mutation was found; None if no seed has found it."""
    for number, seed in enumerate(seeds, 1):
        with MUTATIONS[description]():
            result = run_plan(make_plan(seed))
        if result.violations:
            return f"seed {seed} ({number} tried): {result.violations[0]}"
    return None


def _count(total: Counter[str], result: Result) -> None:
    total["seeds"] += 1
    total["seeds that failed"] += bool(result.violations)
    total["simulated seconds"] += int(result.simulated_seconds)
    total["processor milliseconds"] += int(result.processor_seconds * 1e3)
    total["events"] += result.events
    total["messages"] += result.messages
    total["calls of clients"] += result.calls
    total["calls that failed"] += result.failed_calls
    for kind, count in result.faults.items():
        total[f"fault: {kind}"] += count


def _summary(total: Counter[str]) -> str:
    return "\n".join(f"{name:28}{count:14,}" for name, count in total.items())


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
