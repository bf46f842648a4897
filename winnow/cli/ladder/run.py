"""Measures all steps, round after round, so that other work of the machine affects every step."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from winnow.cli.ladder import zipf
from winnow.cli.ladder.figures import Rung, rungs
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.texts import Ids, made_up
from winnow.cli.ladder.worker import WorkerJob, WorkerResult, worker_pool
from winnow.telemetry.progress import StageProgress


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
