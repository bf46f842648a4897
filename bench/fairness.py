"""One polite client beside greedy clients: each gets its turns.

    python -m bench fairness --index INDEX --questions FILE [--only NAME] [--seconds 10] [--json]

Starts one cluster on this machine. In each scenario a polite client asks one question after the
other, of ten passages and with two seconds each: first alone, then beside a greedy load. The load
runs in a separate process at a low priority, as if it were another machine. A load with names is
compared with one without names, which runs just before it; on a machine that does other work the
answers a second differ by more than the promise. Exits with 1 if a promise is broken.
"""

import argparse
import contextlib
from functools import partial

from bench.hostile.attacker import attacking
from bench.hostile.attacks.greedy import LOADS, SETTLING, UNNAMED
from bench.hostile.courses import target_of
from bench.hostile.criteria import outcome_metrics
from bench.scenarios import runner
from bench.scenarios.criteria import Criterion, Finding
from bench.scenarios.rows import OK, Observed, availability, latency
from bench.scenarios.runner import Scenario
from bench.scenarios.stage import Shape, Stage

MOST_SLOWER = 3.0
"""Most times that the polite client's median grows beside a load."""
LEAST_ANSWERED = 0.95
"""Least share of its questions that are answered beside one greedy client, and least goodput with
names, of that without.
"""
_CALM = 20.0
"""Seconds after which a load before is surely forgotten."""
_PASSAGES = 10
ALONE, UNNAMED_PHASE, BESIDE = "alone", "beside no names", "beside"


async def crowded(stage: Stage, name: str) -> None:
    """Runs the polite client alone, then beside a load; with names, beside one without first."""
    loads = {BESIDE: name}
    if LOADS[name].parties > 1:
        loads = {UNNAMED_PHASE: UNNAMED, BESIDE: name}
    stage.phase("calming")

    async def calm() -> bool:
        row = await stage.load.ask()
        return row.status == OK and stage.asking.reply.passages_read == _PASSAGES

    with contextlib.suppress(TimeoutError):
        await stage.until(calm, _CALM)
    stage.phase(ALONE)
    await stage.load.closed(1, stage.seconds / 3)
    for phase, load in loads.items():
        target = target_of(stage, stage.seconds / (1 - SETTLING))
        async with attacking(load, target) as attack:
            stage.phase("settling")
            await stage.load.closed(1, target.seconds * SETTLING)
            stage.phase(phase)
            await stage.load.closed(1, stage.seconds)
            marks = outcome_metrics(await attack.outcomes(target.seconds))
        stage.marks |= {f"{phase}, {mark}": count for mark, count in marks.items()}


def answers(seen: Observed, phase: str) -> float:
    """Returns the answers to all clients in a phase."""
    polite = sum(row.status == OK for row in seen.phases[phase])
    return polite + seen.marks.get(f"{phase}, outcome {OK}", 0.0)


def median_within(factor: float) -> Criterion:
    """The polite client's median beside the load is at most `factor` times that alone."""

    def judge(seen: Observed) -> Finding:
        alone, beside = (latency(seen.phases[phase], 0.5) for phase in (ALONE, BESIDE))
        summary = f"median {beside * 1e3:.0f} ms, {beside / alone:.1f} times that alone"
        return Finding(beside <= factor * alone, f"{summary}, at most {factor:g}")

    return judge


def answered(share: float) -> Criterion:
    """At least this share of the polite client's questions is answered."""

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[BESIDE]
        reached = availability(rows)
        return Finding(reached >= share, f"{reached:.0%} of {len(rows)} polite questions answered")

    return judge


def has_turns(parties: int) -> Criterion:
    """The polite client has its share of the answers, as one of `parties` and itself."""

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[BESIDE]
        # one less: its last question may still wait
        due = max(int(answers(seen, BESIDE)) // (parties + 1) - 1, 0)
        own = sum(row.status == OK for row in rows)
        summary = f"{own} of {len(rows)} polite questions answered, {due} are its turns"
        return Finding(own >= min(due, len(rows)), summary)

    return judge


def goodput_kept(share: float) -> Criterion:
    """Clients with names have at least this share of the answers that they have without."""

    def judge(seen: Observed) -> Finding:
        named, unnamed = answers(seen, BESIDE), answers(seen, UNNAMED_PHASE)
        summary = f"{named:.0f} answers, {unnamed:.0f} without names, at least {share:.0%}"
        return Finding(named >= share * unnamed, summary)

    return judge


def scenarios() -> tuple[Scenario, ...]:
    """Returns one scenario for each load."""
    one = (median_within(MOST_SLOWER), answered(LEAST_ANSWERED))
    return tuple(
        Scenario(
            name=name,
            description=load.description,
            course=partial(crowded, name=name),
            criteria=(
                (has_turns(load.parties), goodput_kept(LEAST_ANSWERED)) if load.parties > 1 else one
            ),
            shape=Shape(passages=_PASSAGES, client="polite"),
        )
        for name, load in LOADS.items()
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench fairness`."""
    runner.add_arguments(parser, [scenario.name for scenario in scenarios()])


def run(options: argparse.Namespace) -> int:
    """Runs the chosen scenarios; returns the exit code."""
    return runner.run(options, scenarios(), one_cluster=True)
