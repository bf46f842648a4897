"""The figures of each step, from the results of workers. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from winnow.cli.asking import percentiles
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.worker import WorkerResult


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
