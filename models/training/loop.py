"""The training loop: a task's losses, step, checkpoint.

Knows optimisers, schedules and checkpoints; what is learnt and from what is the task's
(`reading_task`, `encoding_task`).
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from models.network.fake_quantisation import enable, prepare
from models.training import checkpoint
from winnow.errors import WinnowError


class TrainingError(WinnowError):
    """A run cannot go on."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Learning rate of a run, and the steps that imitate int8."""

    rate: float = 2e-4
    """Peak learning rate, reached after `warmup` and falling linearly to zero."""
    warmup: float = 0.05
    """Share of the steps."""
    quantised: float = 0.25
    """Share of the steps, at the end, that imitate int8."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class StepLosses:
    """Result of one step: losses by name, whose sum is minimised, and the number of sequences."""

    losses: dict[str, Tensor]
    sequences: int

    def times(self, share: float) -> "StepLosses":
        """Returns the losses multiplied by a share, as a part of a step."""
        return StepLosses(
            {name: loss * share for name, loss in self.losses.items()}, self.sequences
        )


class Task(Protocol):
    """A training objective. The same step has the same examples, also after a resume."""

    @property
    def network(self) -> nn.Module:
        """The network that is trained; its `body` imitates int8."""

    @property
    def steps(self) -> int:
        """Steps of the whole run."""

    @property
    def plan(self) -> dict[str, Any]:
        """Everything that decides what is learnt, as plain values."""

    def parts(self, step: int) -> Iterator[StepLosses]:
        """Yields the losses at `step`, in parts that add up; only one of them is in memory at a
        time.
        """


@dataclass(slots=True, kw_only=True)
class RunState:
    """State of a run."""

    step: int
    steps: int
    losses: dict[str, float] = field(default_factory=dict)
    """Running means."""
    sequences: int = 0
    started: float = field(default_factory=time.monotonic)

    def took(self, losses: dict[str, float], sequences: int) -> None:
        """One more step is done."""
        self.step, self.sequences = self.step + 1, self.sequences + sequences
        for name, loss in losses.items():
            before = self.losses.get(name, loss)
            self.losses[name] = before + (loss - before) * 0.02

    def line(self) -> str:
        """Returns losses and speed as a line of text."""
        elapsed = max(time.monotonic() - self.started, 1e-9)
        losses = "  ".join(f"{name} {loss:.3f}" for name, loss in self.losses.items())
        return f"{losses}  {self.sequences / elapsed:.1f} sequences/s"


class Trainer:
    """One run, from its first step or from its checkpoint."""

    def __init__(self, task: Task, schedule: Schedule, path: Path) -> None:
        """Goes on from the checkpoint at `path` if there is one.

        Raises:
            TrainingError: the checkpoint is of another plan, or there is nothing to learn.

        """
        self._task, self._schedule, self._path = task, schedule, path
        self._plan = {**task.plan, **asdict(schedule)}
        self._layers = prepare(task.network.body)  # type: ignore[arg-type]
        self._trained = [p for p in task.network.parameters() if p.requires_grad]
        self._optimiser = torch.optim.AdamW(
            self._trained, lr=schedule.rate, weight_decay=0.01, fused=True
        )
        self.step, self._steps = 0, task.steps
        self._resume()
        if not self._steps:
            raise TrainingError(
                "there are too few questions for one training step: mine more of them, or give a "
                "larger --scale, or smaller steps (--questions, --passages)"
            )

    def run(self, every: int, report: Callable[[RunState], None], until: int | None = None) -> None:
        """Trains to the end, or to step `until`; reports every step and saves every `every` steps.

        Raises:
            TrainingError: the loss is not a number any more.

        """
        end = self._steps if until is None else min(until, self._steps)
        standing = RunState(step=self.step, steps=self._steps)
        self._task.network.train()
        while self.step < end:
            standing.took(*self._learn())
            if self.step % every == 0 or self.step == end:
                self._save()
            report(standing)

    def _learn(self) -> tuple[dict[str, float], int]:
        done = self.step / self._steps
        if done >= 1 - self._schedule.quantised:
            enable(self._layers)
        for group in self._optimiser.param_groups:
            group["lr"] = self._schedule.rate * pace(done, self._schedule.warmup)
        self._optimiser.zero_grad()
        losses: Counter[str] = Counter()
        sequences = 0
        for part in self._task.parts(self.step):
            total = torch.stack(list(part.losses.values())).sum()
            if not torch.isfinite(total):
                raise TrainingError(f"the loss is {total.item()} at step {self.step}")
            total.backward()  # type: ignore[no-untyped-call]
            losses.update({name: loss.item() for name, loss in part.losses.items()})
            sequences += part.sequences
        torch.nn.utils.clip_grad_norm_(self._trained, 1.0)
        self._optimiser.step()
        self.step += 1
        return dict(losses), sequences

    def _save(self) -> None:
        state: dict[str, Any] = {
            "step": self.step,
            "steps": self._steps,
            "plan": self._plan,
            "network": self._task.network.state_dict(),
            "optimiser": self._optimiser.state_dict(),
        }
        checkpoint.save(self._path, state)

    def _resume(self) -> None:
        state = checkpoint.load(self._path)
        if state is None:
            return
        if state["plan"] != self._plan:
            raise TrainingError(
                f"{self._path} belongs to another plan: {state['plan']}; "
                "give the same settings, or another directory"
            )
        self._task.network.load_state_dict(state["network"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]
        if self.step >= state.get("steps", self._steps):
            self._steps = self.step  # a finished run stays as it is, even if more was mined since


def pace(done: float, warmup: float) -> float:
    """Returns the learning rate, as a share of its peak, when `done` of the run has passed."""
    return done / warmup if done < warmup else (1 - done) / (1 - warmup)


def autocast(device: str) -> AbstractContextManager[None]:
    """bfloat16 where the processor has it natively: about twice as fast there."""
    able = device != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported()  # noqa: SLF001
    return torch.autocast(device, dtype=torch.bfloat16, enabled=bool(able))
