"""The whole ladder, round after round, so that what else the machine does falls on every step."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from winnow.cli.ladder import zipf
from winnow.cli.ladder.crew import WorkerPool, crew
from winnow.cli.ladder.figures import Rung, rungs
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.texts import Ids, made_up
from winnow.cli.ladder.worker import WorkerResult, WorkerRound
from winnow.telemetry.progress import StageProgress


@dataclass(frozen=True, slots=True)
class LadderPlan:
    """What is measured."""

    steps: Sequence[LadderStep]
    workers: int
    requests: int
    """Of each worker at each step, over all rounds, unless they take too long."""
    rounds: int
    seconds: float
    """Of each step in each round, after which no further request begins."""
    texts: Sequence[Ids] = ()
    """Of a file; made up if there are none."""
    distinct: int = zipf.DISTINCT
    """Texts that may come where they repeat."""


def measure(plan: LadderPlan, place: Path, progress: StageProgress) -> list[Rung]:
    """Runs the ladder with the models at `place`.

    Raises:
        WinnowError: a worker ended, or a model cannot be loaded.

    """
    loads = _Loads(plan)
    rounds: list[list[list[WorkerResult]]] = []
    with crew(plan.workers, place) as workers:
        for number in range(plan.rounds):
            progress.start(f"round {number + 1} of {plan.rounds}", len(plan.steps))
            rounds.append([_step(workers, loads, step, progress) for step in plan.steps])
    return rungs(plan.steps, rounds)


def _step(
    workers: WorkerPool, loads: "_Loads", step: LadderStep, progress: StageProgress
) -> list[WorkerResult]:
    done = workers.do(loads.jobs(step))
    progress.advance()
    return done


class _Loads:
    """The texts that workers are sent: other ones in every round, the same with every seed."""

    def __init__(self, plan: LadderPlan) -> None:
        self._plan, self._chance = plan, Random(0)
        self._texts = plan.texts or made_up(plan.distinct, self._chance)
        self._ranked = list(dict.fromkeys(self._texts))
        """Distinct ones; their order is as good as any other for how often they come."""
        self._each = zipf.shares(len(self._ranked))
        self._entries = zipf.entries_for(zipf.HITS, self._each)

    def jobs(self, step: LadderStep) -> list[WorkerRound]:
        """One for each worker."""
        return [self._job(step) for _ in range(self._plan.workers)]

    def _job(self, step: LadderStep) -> WorkerRound:
        plan = self._plan
        number = -(-plan.requests // plan.rounds)
        if not step.cached:
            return WorkerRound(step, self._chance.choices(self._texts, k=number), plan.seconds)
        known = zipf.kept_by_then(self._entries, self._each, self._chance)
        coming = zipf.drawn(number, self._each, self._chance)
        return WorkerRound(
            step, self._named(coming), plan.seconds, self._entries, self._named(known)
        )

    def _named(self, places: Sequence[int]) -> list[Ids]:
        return [self._ranked[place] for place in places]
