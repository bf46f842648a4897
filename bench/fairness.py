"""Measures whether a polite client gets its fair share while greedy clients send load.

    python -m bench fairness --index INDEX --questions FILE [--only NAME] [--seconds 10] [--json]

Starts one cluster on this machine. In each scenario a polite client asks one question after the
other, first alone, then beside a greedy load. Each question reads ten passages and has a deadline
of two seconds. The load runs in a separate process at a low priority, as if it were another
machine. A load with many client names is compared with the same load without names, which runs just
before it. Exits with 1 if a promise is broken. Other work on the machine can break the promise of
goodput.
"""

import argparse
import contextlib
from functools import partial

from bench.hostile.attacker import attack_process
from bench.hostile.attacks.greedy import LOADS, SETTLING, UNNAMED
from bench.hostile.criteria import outcome_values
from bench.hostile.procedures import build_attack_target
from bench.scenarios import runner
from bench.scenarios.criteria import Criterion, Finding, criterion
from bench.scenarios.measurements import OK, Measurements, availability, latency_quantile
from bench.scenarios.runner import Scenario
from bench.scenarios.stage import Setup, Stage

MAX_MEDIAN_RATIO = 3.0
"""Upper bound of the polite client's median beside a load, divided by its median alone."""
MIN_SHARE = 0.95
"""Lower bound of two values.

With one greedy client, the share of polite questions that are answered. With many client names, the
goodput as a ratio to the goodput without names.
"""
_CALM_TIMEOUT = 20.0
"""Maximum time in seconds for a cluster to recover from an earlier load."""
_PASSAGES = 10
ALONE, BESIDE_UNNAMED, BESIDE = "alone", "beside no names", "beside"


async def ask_beside_load(stage: Stage, name: str) -> None:
    """Runs the polite client alone, then beside a load.

    Before a load with several names, the client also runs beside the load without names.
    """
    loads = {BESIDE: name}
    if LOADS[name].names > 1:
        loads = {BESIDE_UNNAMED: UNNAMED, BESIDE: name}
    stage.begin_phase("calming")

    async def answered_in_full() -> bool:
        outcome = await stage.load.ask()
        return outcome.status == OK and stage.asker.reply.passages_read == _PASSAGES

    with contextlib.suppress(TimeoutError):
        await stage.wait_until(answered_in_full, _CALM_TIMEOUT)
    stage.begin_phase(ALONE)
    await stage.load.run_closed_loop(1, stage.seconds / 3)
    for phase, load in loads.items():
        target = build_attack_target(stage, stage.seconds / (1 - SETTLING))
        async with attack_process(load, target) as attack:
            stage.begin_phase("settling")
            await stage.load.run_closed_loop(1, target.seconds * SETTLING)
            stage.begin_phase(phase)
            await stage.load.run_closed_loop(1, stage.seconds)
            counts = outcome_values(await attack.outcomes(target.seconds))
        stage.values |= {f"{phase}, {name}": count for name, count in counts.items()}


def count_answers(measurements: Measurements, phase: str) -> float:
    """Returns the number of answers to all clients in a phase."""
    polite = sum(outcome.status == OK for outcome in measurements.phases[phase])
    return polite + measurements.values.get(f"{phase}, outcome {OK}", 0.0)


@criterion
def max_median_ratio(measurements: Measurements, factor: float) -> Finding:
    """The polite client's median beside the load is at most `factor` times its median alone."""
    alone, beside = (latency_quantile(measurements.phases[phase], 0.5) for phase in (ALONE, BESIDE))
    summary = f"median {beside * 1e3:.0f} ms, {beside / alone:.1f} times the median alone"
    return Finding(beside <= factor * alone, f"{summary}, at most {factor:g}")


@criterion
def min_answered(measurements: Measurements, min_share: float) -> Finding:
    """At least `min_share` of the polite client's questions are answered."""
    outcomes = measurements.phases[BESIDE]
    share_answered = availability(outcomes)
    summary = f"{share_answered:.0%} of {len(outcomes)} polite questions answered"
    return Finding(share_answered >= min_share, summary)


@criterion
def fair_share(measurements: Measurements, names: int) -> Finding:
    """The polite client gets an equal share of the answers beside `names` greedy client names."""
    outcomes = measurements.phases[BESIDE]
    # minus one, because the polite client's last question may still be waiting
    due_answers = max(int(count_answers(measurements, BESIDE)) // (names + 1) - 1, 0)
    polite_answers = sum(outcome.status == OK for outcome in outcomes)
    summary = f"{polite_answers} of {len(outcomes)} polite questions answered"
    summary += f", the fair share is {due_answers}"
    return Finding(polite_answers >= min(due_answers, len(outcomes)), summary)


@criterion
def min_goodput_ratio(measurements: Measurements, min_share: float) -> Finding:
    """Sending client names costs little.

    All clients together get at least `min_share` of the answers that they get from the same load
    without client names.
    """
    named, unnamed = (
        count_answers(measurements, BESIDE),
        count_answers(measurements, BESIDE_UNNAMED),
    )
    summary = f"{named:.0f} answers, at least {min_share:.0%} of {unnamed:.0f} without names"
    return Finding(named >= min_share * unnamed, summary)


def _scenario(name: str) -> Scenario:
    """Returns the scenario of a greedy load."""
    load = LOADS[name]
    criteria: tuple[Criterion, ...] = (max_median_ratio(MAX_MEDIAN_RATIO), min_answered(MIN_SHARE))
    if load.names > 1:
        criteria = (fair_share(load.names), min_goodput_ratio(MIN_SHARE))
    setup = Setup(passages=_PASSAGES, client="polite")
    return Scenario(load.description, partial(ask_beside_load, name=name), criteria, setup)


SCENARIOS = {name: _scenario(name) for name in LOADS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench fairness`."""
    runner.add_arguments(parser, SCENARIOS)


def run(options: argparse.Namespace) -> int:
    """Runs the chosen scenarios; returns the exit code."""
    return runner.run(options, SCENARIOS, one_cluster=True)
