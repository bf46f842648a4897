"""Training a head: steps, the mean of its weights on the way, and when to stop."""

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from rich.console import Console

from models.heads.problem import Problem
from models.heads.settings import HeadPlan
from models.heads.states import Places, batches, padded
from models.heads.tasks import Task, task_of
from models.progress import DRAWN_EVERY, IntervalTimer, bar
from models.training.loop import TrainingError

_WARMUP = 0.05
"""Share of the steps in which the learning rate rises."""
_MEMORY = 0.995
"""Share that the mean of the weights keeps at a step (Polyak and Juditsky, 1992)."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A head as training left it."""

    task: Task
    epochs: int
    """Number of epochs after which it was best."""
    held_out: float
    """Its score on held-out texts at that time."""


@contextmanager
def _one_thread() -> Iterator[None]:
    """Steps are so small that threads would spend their time waiting for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
def train(problem: Problem, plan: HeadPlan, console: Console | None = None) -> Trained:
    """Trains a new head; the same seed gives the same head on the same machine.

    Raises:
        TrainingError: the loss is not a number any more.

    """
    torch.manual_seed(plan.seed)
    chance = np.random.default_rng(plan.seed)
    task = task_of(problem, plan)
    run = _Run(task, problem, plan)
    best, best_score, best_epoch = copy.deepcopy(run.mean), -1.0, 0
    with _Bar(plan.epochs * run.steps, console) as shown:
        for epoch in range(1, plan.epochs + 1):
            for places in batches(run.places, problem.learnt.encoded.lengths, plan.batch, chance):
                run.step(places)
                shown.advance()
            score = run.score()
            shown.say(f"epoch {epoch}: {score:.2f} % on held-out texts")
            if score >= best_score:  # of equals the later one, whose weights are a longer mean
                best, best_score, best_epoch = copy.deepcopy(run.mean), score, epoch
            elif epoch - best_epoch >= plan.patience:
                break
    task.network.load_state_dict(best)
    task.settle()
    return Trained(task, best_epoch, best_score)


class _Run:
    """The steps of one training."""

    def __init__(self, task: Task, problem: Problem, plan: HeadPlan) -> None:
        self._task, self._problem, self._plan = task, problem, plan
        self.places = np.arange(len(problem.learnt.rows))
        self.steps = -(-len(self.places) // plan.batch)
        """Steps of an epoch."""
        self._done = 0
        self._optimiser = torch.optim.AdamW(
            task.network.parameters(), lr=plan.rate, weight_decay=plan.decay
        )
        self.mean = {name: value.clone() for name, value in task.network.state_dict().items()}

    def step(self, places: Places) -> None:
        """Learns from the texts at `places`."""
        self._task.network.train()
        for group in self._optimiser.param_groups:
            group["lr"] = self._plan.rate * self._pace()
        loss = self._task.loss(*padded(self._problem.learnt.encoded, places), places)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss.item()} at step {self._done}: give a smaller --rate"
            )
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._task.network.parameters(), 1.0)
        self._optimiser.step()
        self._done += 1
        self._average()

    def score(self) -> float:
        """Returns the score of the mean weights."""
        now = copy.deepcopy(self._task.network.state_dict())
        self._task.network.load_state_dict(self.mean)
        found = self._task.score()
        self._task.network.load_state_dict(now)
        return found

    def _pace(self) -> float:
        done = self._done / (self.steps * self._plan.epochs)
        return done / _WARMUP if done < _WARMUP else (1 - done) / (1 - _WARMUP)

    @torch.no_grad()
    def _average(self) -> None:
        memory = min(_MEMORY, (1 + self._done) / (10 + self._done))
        for name, value in self._task.network.state_dict().items():
            self.mean[name].lerp_(value, 1 - memory)


class _Bar:
    """A bar on a terminal, a line an epoch elsewhere; a context manager."""

    def __init__(self, total: int, console: Console | None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar = bar(self._console)
        self._task = self._bar.add_task("train", total=total)
        self._drawn = IntervalTimer(DRAWN_EVERY)

    def advance(self) -> None:
        """One step is done."""
        self._bar.advance(self._task)
        if self._drawn.due():
            self._bar.refresh()

    def say(self, text: str) -> None:
        """An epoch is done."""
        self._bar.update(self._task, description=text)
        if not self._console.is_terminal:
            self._console.print(f"{time.strftime('%H:%M:%S')}  {text}")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
