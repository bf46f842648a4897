"""Runs a simulated cluster for many seeds. The first seed that fails is shortened and explained."""

import argparse
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from simulation import fixtures
from simulation.copy_mutations import MUTATIONS
from simulation.drawing import Wish, make_plan
from simulation.found import FOUND
from simulation.plan import Plan, Shape
from simulation.running import Result, run_plan
from simulation.shrinking import shrink
from simulation.worker import run_in_workers

_SHOWN_LINES = 80
"""Lines of the timeline before the first violation that are shown."""
_SHOWN_VIOLATIONS = 5
_PROGRESS_SECONDS = 30.0
_UNINTERESTING = ("ListShards", "GetWordCounts", "status 100")
"""Parts of lines that the shown timeline leaves out: regular messages."""


def run(arguments: list[str]) -> int:
    """Runs what the arguments ask for; returns the exit code: 0, or 1 after a violation."""
    options = _parser().parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    wish = Wish(
        shape=Shape(shards=3, replicas=2) if options.large else None,
        power_cuts=options.power_cuts,
        named=options.named,
        long=options.long,
    )
    try:
        if options.found:
            return _run_found(options.shrink)
        if options.mutations:
            return _find_mutations(seeds, wish, options)
        return _run_seeds(seeds, wish, options)
    finally:
        fixtures.remove()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="Number of seeds to run.")
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    parser.add_argument("--jobs", type=int, default=1, help="Number of processes that run seeds.")
    parser.add_argument(
        "--shrink", type=int, default=50, help="Runs to shorten the first seed that fails."
    )
    parser.add_argument(
        "--digests", action="store_true", help="Print the hash of each seed's timeline."
    )
    parser.add_argument(
        "--large", action="store_true", help="Simulate 3 shards with 2 replicas with every seed."
    )
    parser.add_argument(
        "--named",
        action="store_true",
        help="Simulate a named index, which is rebuilt and switched, with every seed.",
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help="Let minutes pass between parts of every plan, and some faults last as long.",
    )
    parser.add_argument(
        "--power-cuts",
        action="store_true",
        help="Simulate only power losses, and kills at fault points.",
    )
    parser.add_argument(
        "--found", action="store_true", help="Run the plans that once broke a promise."
    )
    parser.add_argument(
        "--mutations", action="store_true", help="Run deliberate errors until a seed finds them."
    )
    parser.add_argument(
        "--only", default="", help="Run only mutations whose description has one of these texts."
    )
    return parser


def run_seed(seed: int, wish: Wish) -> Result:
    """Runs a seed in a worker process; returns the result without the timeline."""
    result = run_plan(make_plan(seed, wish))
    result.timeline = []
    return result


def _results(
    seeds: Sequence[int], wish: Wish, jobs: int, is_stopped: Callable[[], bool]
) -> Iterator[Result]:
    if jobs > 1:
        yield from run_in_workers(run_seed.__name__, seeds, jobs, is_stopped, wish)
        return
    for seed in seeds:
        yield run_seed(seed, wish)
        if is_stopped():
            return


def _run_seeds(seeds: Sequence[int], wish: Wish, options: argparse.Namespace) -> int:
    """Counts and prints results until all are there, or until Ctrl-C."""
    total, failed = Counter[str](), list[Result]()
    shown_at = time.monotonic()
    with _interruptible() as is_interrupted:
        for result in _results(seeds, wish, options.jobs, is_interrupted):
            _count(total, result)
            if options.digests:
                _say(f"seed {result.plan.seed}: {result.digest}")
            if result.violations:
                failed.append(result)
                _say(f"seed {result.plan.seed} failed: {result.violations[0]}")
            if time.monotonic() - shown_at >= _PROGRESS_SECONDS:
                shown_at = time.monotonic()
                _say(f"{total['seeds']:,} of {options.seeds:,} seeds, {len(failed)} failed")
    if failed:
        first = min(failed, key=lambda each: each.plan.seed)
        _explain(_shortened(run_plan(first.plan), options.shrink))
    _say(_summary(total))
    return int(bool(failed))


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Makes the first Ctrl-C set a flag, so that running seeds end; the second one interrupts."""
    pressed = []

    def remember(*_: object) -> None:
        pressed.append(True)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _run_found(max_runs: int) -> int:
    """Runs the plans that found bugs; returns 0 if none breaks a promise."""
    failed = 0
    for description, plan in FOUND.items():
        result = run_plan(plan)
        _say(f"{description}: {'failed' if result.violations else 'ok'}")
        if result.violations:
            failed += 1
            _explain(_shortened(result, max_runs))
    return int(failed > 0)


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


def _find_mutations(seeds: Sequence[int], wish: Wish, options: argparse.Namespace) -> int:
    """Runs each mutation until a seed finds it; returns 0 if all were found."""
    chosen = [
        number
        for number, each in enumerate(MUTATIONS)
        if any(part in each for part in options.only.split(","))
    ]
    found = (
        run_in_workers(find_mutation.__name__, chosen, options.jobs, lambda: False, seeds, wish)
        if options.jobs > 1
        else (find_mutation(number, seeds, wish) for number in chosen)
    )
    missed = 0
    for description, how in found:
        missed += how is None
        _say(f"{description}\n    {how or 'not found'}")
    _say(f"found {len(chosen) - missed} of {len(chosen)} mutations with {len(seeds)} seeds")
    return int(missed > 0)


def find_mutation(number: int, seeds: Sequence[int], wish: Wish) -> tuple[str, str | None]:
    """Returns a mutation and how it was found; None if no plan has found it."""
    description = list(MUTATIONS)[number]
    plans = {f"seed {seed}": partial(make_plan, seed, wish) for seed in seeds}
    plans |= {repr(name): partial(replace, plan) for name, plan in FOUND.items()}
    for count, (name, make) in enumerate(plans.items(), 1):
        with MUTATIONS[description]():
            result = run_plan(make())
        if result.violations:
            return description, f"{name} ({count} tried): {result.violations[0]}"
    return description, None


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
