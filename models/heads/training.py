"""Trains a head, with a running mean of its weights and early stopping."""

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from rich.console import Console

from models.heads.objectives import HeadObjective, new_objective
from models.heads.settings import HeadPlan
from models.heads.states import Indices, draw_batches, pad_states
from models.heads.task import HeadTask
from models.progress import REDRAW_SECONDS, IntervalTimer, progress_bar
from models.training.loop import TrainingError, learning_rate_share

_WARMUP = 0.05
"""Share of the steps in which the learning rate rises to its peak."""
_MEAN_MEMORY = 0.995
"""Decay of the running mean of the weights in each step (Polyak and Juditsky, 1992)."""


@dataclass(frozen=True, slots=True)
class TrainedHead:
    """A trained head with its best score."""

    objective: HeadObjective
    epochs: int
    """Number of epochs after which the score was best."""
    score: float
    """Best score on held-out texts, in percent."""


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limits PyTorch to one thread: in steps this small, threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
def train_new_head(task: HeadTask, plan: HeadPlan) -> TrainedHead:
    """Trains a new head. The same seed gives the same head on the same machine.

    Raises:
        TrainingError: the loss is no longer finite.

    """
    torch.manual_seed(plan.seed)
    generator = np.random.default_rng(plan.seed)
    run = _HeadRun(task, plan)
    best, best_score, best_epoch = copy.deepcopy(run.mean), -1.0, 0
    with _EpochProgress(plan.epochs * run.steps_per_epoch) as progress:
        for epoch in range(1, plan.epochs + 1):
            lengths = task.training.encoded.lengths
            for indices in draw_batches(run.indices, lengths, plan.batch, generator):
                run.step(indices)
                progress.advance()
            score = run.score()
            progress.report(f"epoch {epoch}: {score:.2f} % on held-out texts")
            if score >= best_score:  # of equal scores, the later mean covers more steps
                best, best_score, best_epoch = copy.deepcopy(run.mean), score, epoch
            elif epoch - best_epoch >= plan.patience:
                break
    run.objective.network.load_state_dict(best)
    run.objective.tune_biases()
    return TrainedHead(run.objective, best_epoch, best_score)


class _HeadRun:
    """Network, optimiser and running mean of one training run."""

    def __init__(self, task: HeadTask, plan: HeadPlan) -> None:
        self.objective = new_objective(task, plan)
        self._network, self._encoded, self._plan = (
            self.objective.network,
            task.training.encoded,
            plan,
        )
        self.indices = np.arange(len(task.training.rows))
        self.steps_per_epoch = -(-len(self.indices) // plan.batch)
        self._steps_done = 0
        self._optimiser = torch.optim.AdamW(
            self._network.parameters(), lr=plan.rate, weight_decay=plan.decay
        )
        self.mean = {name: value.clone() for name, value in self._network.state_dict().items()}

    def step(self, indices: Indices) -> None:
        """Updates the weights on the training texts with these indices."""
        self._network.train()
        done = self._steps_done / (self.steps_per_epoch * self._plan.epochs)
        for group in self._optimiser.param_groups:
            group["lr"] = self._plan.rate * learning_rate_share(done, _WARMUP)
        loss = self.objective.loss(*pad_states(self._encoded, indices), indices)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss.item()} at step {self._steps_done}: set a smaller --rate"
            )
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), 1.0)
        self._optimiser.step()
        self._steps_done += 1
        self._update_mean()

    def score(self) -> float:
        """Returns the score of the averaged weights on held-out texts, in percent."""
        current = copy.deepcopy(self._network.state_dict())
        self._network.load_state_dict(self.mean)
        score = self.objective.score()
        self._network.load_state_dict(current)
        return score

    @torch.no_grad()
    def _update_mean(self) -> None:
        memory = min(_MEAN_MEMORY, (1 + self._steps_done) / (10 + self._steps_done))
        for name, value in self._network.state_dict().items():
            self.mean[name].lerp_(value, 1 - memory)


class _EpochProgress:
    """Shows a bar on a terminal, and a line per epoch elsewhere. A context manager."""

    def __init__(self, steps: int) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar = progress_bar(self._console)
        self._bar_task = self._bar.add_task("train", total=steps)
        self._redraw_timer = IntervalTimer(REDRAW_SECONDS)

    def advance(self) -> None:
        """Counts a finished step."""
        self._bar.advance(self._bar_task)
        if self._redraw_timer.due():
            self._bar.refresh()

    def report(self, text: str) -> None:
        """Shows the result of a finished epoch."""
        self._bar.update(self._bar_task, description=text)
        if not self._console.is_terminal:
            self._console.print(f"{time.strftime('%H:%M:%S')}  {text}")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
