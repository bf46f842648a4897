"""Measures all steps in each round, so that other load on the machine affects all steps alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from winnow.cli.asking import percentiles
from winnow.cli.ladder import zipf
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.texts import Ids, synthetic_texts
from winnow.cli.ladder.worker import WorkerJob, WorkerResult, worker_pool
from winnow.telemetry.progress import StageProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The figures of a step over all rounds. Latencies are per text, in milliseconds."""

    name: str
    requests: int
    """Number of texts classified by all workers in all rounds."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    rates: tuple[float, ...]
    """Predictions per second of all workers together, by round."""
    rate: float
    """Median of the rates."""
    hit_rate: float | None
    """Share of the texts found in the cache; None without a cache."""
    times_first: float
    """Predictions per second, divided by those of the first step."""
    times_before: float
    """Predictions per second, divided by those of the previous step."""


def step_results(
    steps: Sequence[LadderStep], rounds: Sequence[Sequence[Sequence[WorkerResult]]]
) -> list[StepResult]:
    """Computes the figures of every step. `rounds[r][s]` are the workers' results of step s.

    Factors compare steps of the same round; their median over rounds is reported.
    """
    rates = [[_rate(step, done) for step, done in zip(steps, each, strict=True)] for each in rounds]
    measured = []
    for number, step in enumerate(steps):
        results = [result for each in rounds for result in each[number]]
        latencies = [1e3 * seconds for result in results for seconds in result.latencies]
        p50, p95, p99 = percentiles(latencies, 50, 95, 99)
        own = tuple(each[number] for each in rates)
        hits = sum(result.hits for result in results)
        measured.append(
            StepResult(
                name=step.name,
                requests=len(latencies),
                p50_ms=p50,
                p95_ms=p95,
                p99_ms=p99,
                rates=own,
                rate=median(own),
                hit_rate=hits / len(latencies) if step.cached else None,
                times_first=median(each[number] / each[0] for each in rates),
                times_before=median(each[number] / each[max(number - 1, 0)] for each in rates),
            )
        )
    return measured


def _rate(step: LadderStep, results: Sequence[WorkerResult]) -> float:
    """Sums the rates of all workers. Each rate is over the worker's own time: times differ."""
    return step.predictions * sum(len(each.latencies) / each.seconds for each in results)


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderPlan:
    """The steps to measure, and the load."""

    steps: Sequence[LadderStep]
    workers: int
    requests: int
    """Maximum number of requests of each worker at each step, over all rounds."""
    rounds: int
    seconds: float
    """Seconds of each step in each round. After this time, no request begins."""
    texts: Sequence[Ids] = ()
    """Token ids of the texts; empty for synthetic texts."""
    distinct_texts: int = zipf.DISTINCT
    """Number of distinct synthetic texts."""


def measure_steps(plan: LadderPlan, models: Path, progress: StageProgress) -> list[StepResult]:
    """Measures every step with the models in a directory.

    Raises WinnowError if a worker process ends, or a model cannot be loaded.
    """
    workload = _Workload(plan)
    rounds: list[list[list[WorkerResult]]] = []
    with worker_pool(plan.workers, models) as workers:
        for number in range(plan.rounds):
            progress.start(f"round {number + 1} of {plan.rounds}", len(plan.steps))
            rounds.append([])
            for step in plan.steps:
                rounds[-1].append(workers.run([workload.job(step) for _ in range(plan.workers)]))
                progress.advance()
    return step_results(plan.steps, rounds)


class _Workload:
    """Chooses the texts of each worker. They differ between rounds, but every run has the same."""

    def __init__(self, plan: LadderPlan) -> None:
        self._plan, self._rng = plan, Random(0)
        self._texts = plan.texts or synthetic_texts(plan.distinct_texts, self._rng)
        self._ranked = list(dict.fromkeys(self._texts))
        """Distinct texts, by frequency; their order is arbitrary."""
        self._shares = zipf.shares(len(self._ranked))
        self._entries = zipf.entries_for(zipf.HIT_RATE, self._shares)

    def job(self, step: LadderStep) -> WorkerJob:
        plan = self._plan
        number = -(-plan.requests // plan.rounds)
        if not step.cached:
            texts = self._rng.choices(self._texts, k=number)
            return WorkerJob(step=step, texts=texts, seconds=plan.seconds)
        cached = zipf.cached_texts(self._entries, self._shares, self._rng)
        requested = zipf.draw_texts(number, self._shares, self._rng)
        return WorkerJob(
            step=step,
            texts=[self._ranked[rank] for rank in requested],
            seconds=plan.seconds,
            entries=self._entries,
            cached=[self._ranked[rank] for rank in cached],
        )
