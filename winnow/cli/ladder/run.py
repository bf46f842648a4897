"""Measures all steps, round after round, so that other work of the machine affects every step."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from winnow.cli.asking import percentiles
from winnow.cli.ladder import zipf
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.texts import Ids, made_up
from winnow.cli.ladder.worker import WorkerJob, WorkerResult, worker_pool
from winnow.telemetry.progress import StageProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A step, measured in several rounds. Latencies are of texts, in milliseconds."""

    name: str
    requests: int
    """Texts of all workers and rounds."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    rates: tuple[float, ...]
    """Predictions a second of all workers, in each round."""
    rate: float
    """Median of the rates."""
    hit_rate: float | None
    """Share of the texts that were in the cache; None without a cache."""
    times_first: float
    """Predictions a second, as a multiple of those of the first step."""
    times_before: float
    """Predictions a second, as a multiple of those of the step before this one."""


def rungs(
    steps: Sequence[LadderStep], rounds: Sequence[Sequence[Sequence[WorkerResult]]]
) -> list[Rung]:
    """The figures of every step. `rounds` has, by round and step, the result of each worker.

    Factors are medians over rounds: each factor compares steps of the same round.
    """
    rates = [[_rate(step, done) for step, done in zip(steps, each, strict=True)] for each in rounds]
    found = []
    for place, step in enumerate(steps):
        results = [result for each in rounds for result in each[place]]
        latencies = [1e3 * seconds for result in results for seconds in result.latencies]
        p50, p95, p99 = percentiles(latencies, 50, 95, 99)
        own = tuple(each[place] for each in rates)
        hits = sum(result.hits for result in results)
        found.append(
            Rung(
                name=step.name,
                requests=len(latencies),
                p50_ms=p50,
                p95_ms=p95,
                p99_ms=p99,
                rates=own,
                rate=median(own),
                hit_rate=hits / len(latencies) if step.cached else None,
                times_first=median(each[place] / each[0] for each in rates),
                times_before=median(each[place] / each[max(place - 1, 0)] for each in rates),
            )
        )
    return found


def _rate(step: LadderStep, results: Sequence[WorkerResult]) -> float:
    """Each worker's rate is over its own time: the last one may run longer than the others."""
    return step.predictions * sum(len(each.latencies) / each.seconds for each in results)


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderPlan:
    """What is measured."""

    steps: Sequence[LadderStep]
    workers: int
    requests: int
    """Requests of each worker at each step, over all rounds, unless they take too long."""
    rounds: int
    seconds: float
    """Time of each step in each round, after which no request begins."""
    texts: Sequence[Ids] = ()
    """Texts of a file; made up if empty."""
    distinct: int = zipf.DISTINCT
    """Distinct texts that are made up."""


def measure(plan: LadderPlan, place: Path, progress: StageProgress) -> list[Rung]:
    """Measures every step with the models at `place`.

    Raises WinnowError if a worker ended, or a model cannot be loaded.
    """
    workload = _Workload(plan)
    rounds: list[list[list[WorkerResult]]] = []
    with worker_pool(plan.workers, place) as workers:
        for number in range(plan.rounds):
            progress.start(f"round {number + 1} of {plan.rounds}", len(plan.steps))
            rounds.append([])
            for step in plan.steps:
                rounds[-1].append(workers.run([workload.job(step) for _ in range(plan.workers)]))
                progress.advance()
    return rungs(plan.steps, rounds)


class _Workload:
    """The texts for workers: different ones in every round, the same ones in every run."""

    def __init__(self, plan: LadderPlan) -> None:
        self._plan, self._chance = plan, Random(0)
        self._texts = plan.texts or made_up(plan.distinct, self._chance)
        self._ranked = list(dict.fromkeys(self._texts))
        """Distinct texts, the most frequent first; any order serves."""
        self._shares = zipf.shares(len(self._ranked))
        self._entries = zipf.entries_for(zipf.HITS, self._shares)

    def job(self, step: LadderStep) -> WorkerJob:
        plan = self._plan
        number = -(-plan.requests // plan.rounds)
        if not step.cached:
            texts = self._chance.choices(self._texts, k=number)
            return WorkerJob(step=step, texts=texts, seconds=plan.seconds)
        known = zipf.cached_texts(self._entries, self._shares, self._chance)
        coming = zipf.drawn(number, self._shares, self._chance)
        return WorkerJob(
            step=step,
            texts=[self._ranked[place] for place in coming],
            seconds=plan.seconds,
            entries=self._entries,
            known=[self._ranked[place] for place in known],
        )
