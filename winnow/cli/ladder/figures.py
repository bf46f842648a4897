"""What was measured, step by step. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.worker import WorkerResult


@dataclass(frozen=True, slots=True)
class Rung:
    """A step, measured in several rounds. Latencies are of texts, in milliseconds."""

    name: str
    requests: int
    """Texts, of all workers and rounds."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    rates: tuple[float, ...]
    """Predictions a second of all workers, in each round."""
    rate: float
    """Their median."""
    hit_rate: float | None
    """Share of the texts that were encoded before; None without a cache."""
    times_first: float
    """Predictions a second, as a multiple of the first step's."""
    times_before: float
    """And of the step's before this one."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def rungs(
    steps: Sequence[LadderStep], rounds: Sequence[Sequence[Sequence[WorkerResult]]]
) -> list[Rung]:
    """The figures of every step: `rounds` hold what each worker did at each step, in turn.

    Factors are medians over rounds: each compares steps that were measured right after another.
    """
    rates = [[_rate(step, done) for step, done in zip(steps, each, strict=True)] for each in rounds]
    return [
        _rung(step, place, [each[place] for each in rounds], rates)
        for place, step in enumerate(steps)
    ]


def _rung(
    step: LadderStep,
    place: int,
    done: Sequence[Sequence[WorkerResult]],
    rates: Sequence[Sequence[float]],
) -> Rung:
    parts = [part for workers in done for part in workers]
    latencies = np.concatenate([np.asarray(part.latencies) for part in parts]) * 1e3
    p50, p95, p99 = np.percentile(latencies, [50, 95, 99]).tolist()
    own = tuple(each[place] for each in rates)
    before = max(place - 1, 0)
    return Rung(
        step.name,
        len(latencies),
        p50,
        p95,
        p99,
        own,
        median(own),
        sum(part.hits for part in parts) / len(latencies) if step.cached else None,
        median(each[place] / each[0] for each in rates),
        median(each[place] / each[before] for each in rates),
    )


def _rate(step: LadderStep, done: Sequence[WorkerResult]) -> float:
    """Each worker has its own time: the last one may go on for longer than the others."""
    return step.predictions * sum(len(part.latencies) / part.seconds for part in done)
