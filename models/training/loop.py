"""The training loop, with optimiser, learning rate and checkpoints.

A task (`reading_task`, `encoding_task`) provides the network, the examples and the losses.
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

from models.network.fake_quantisation import enable_quantisation, prepare_quantisation
from models.training import checkpoint
from winnow.errors import WinnowError


class TrainingError(WinnowError):
    """A training run cannot continue."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Learning rate, int8 share and seed of a run. Field names are keys in checkpoints."""

    rate: float = 2e-4
    """Peak learning rate. The rate rises to it during `warmup`, then falls linearly to zero."""
    warmup: float = 0.05
    """Share of the steps in which the learning rate rises."""
    quantised: float = 0.25
    """Share of the steps at the end that imitate int8."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class StepLosses:
    """Losses by name of a step or a part of it, and the number of its sequences.

    Training minimises the sum of the losses.
    """

    losses: dict[str, Tensor]
    sequences: int

    def scaled(self, share: float) -> "StepLosses":
        """Returns the losses multiplied by a part's share of its step."""
        return StepLosses(
            {name: loss * share for name, loss in self.losses.items()}, self.sequences
        )


class Task(Protocol):
    """A network with the losses that train it. After a resume, a step has the same examples."""

    @property
    def network(self) -> nn.Module:
        """The network to train. Its `body` imitates int8 in the last steps."""

    @property
    def steps(self) -> int:
        """Number of steps of the whole run."""

    @property
    def settings_of_result(self) -> dict[str, Any]:
        """Settings that determine the result, for checkpoints."""

    def partial_losses(self, step: int) -> Iterator[StepLosses]:
        """Yields the losses of `step` in parts, to limit memory. The step's loss is their sum."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """Progress of a training run since it was started or resumed."""

    step: int
    """Number of finished steps."""
    steps: int
    """Number of steps of the whole run."""
    losses: dict[str, float] = field(default_factory=dict)
    """Running mean of each loss, by name."""
    sequences: int = 0
    """Number of sequences since the start or resume."""
    started: float = field(default_factory=time.monotonic)

    def record_step(self, losses: dict[str, float], sequences: int) -> None:
        """Counts a finished step and updates the means."""
        self.step, self.sequences = self.step + 1, self.sequences + sequences
        for name, loss in losses.items():
            before = self.losses.get(name, loss)
            self.losses[name] = before + (loss - before) * 0.02

    def summary(self) -> str:
        """Returns losses and speed as a line of text."""
        elapsed = max(time.monotonic() - self.started, 1e-9)
        losses = "  ".join(f"{name} {loss:.3f}" for name, loss in self.losses.items())
        return f"{losses}  {self.sequences / elapsed:.1f} sequences/s"


class Trainer:
    """Trains the network of a task and writes checkpoints."""

    def __init__(self, task: Task, schedule: Schedule, path: Path) -> None:
        """Resumes from the checkpoint at `path` if there is one.

        Raises:
            TrainingError: the checkpoint has another plan, or there are no steps.

        """
        self._task, self._schedule, self._path = task, schedule, path
        self._plan = {**task.settings_of_result, **asdict(schedule)}
        self._layers = prepare_quantisation(task.network.body)  # type: ignore[arg-type]
        self._parameters = [p for p in task.network.parameters() if p.requires_grad]
        self._optimiser = torch.optim.AdamW(
            self._parameters, lr=schedule.rate, weight_decay=0.01, fused=True
        )
        self.step, self._steps = 0, task.steps
        self._resume()
        if not self._steps:
            raise TrainingError(
                "there are too few questions for one training step: mine more questions, set a "
                "larger --scale, or set smaller steps (--questions, --passages)"
            )

    def run(
        self,
        checkpoint_every: int,
        report: Callable[[RunState], None],
        until: int | None = None,
    ) -> None:
        """Trains to the end or to step `until`. Reports every step.

        Saves a checkpoint every `checkpoint_every` steps and at the end.

        Raises:
            TrainingError: the loss is no longer finite.

        """
        end = self._steps if until is None else min(until, self._steps)
        state = RunState(step=self.step, steps=self._steps)
        self._task.network.train()
        while self.step < end:
            state.record_step(*self._train_step())
            if self.step % checkpoint_every == 0 or self.step == end:
                self._save()
            report(state)

    def _train_step(self) -> tuple[dict[str, float], int]:
        done = self.step / self._steps
        if done >= 1 - self._schedule.quantised:
            enable_quantisation(self._layers)
        for group in self._optimiser.param_groups:
            group["lr"] = self._schedule.rate * learning_rate_share(done, self._schedule.warmup)
        self._optimiser.zero_grad()
        losses: Counter[str] = Counter()
        sequences = 0
        for part in self._task.partial_losses(self.step):
            total = torch.stack(list(part.losses.values())).sum()
            if not torch.isfinite(total):
                raise TrainingError(
                    f"the loss is {total.item()} at step {self.step}: set a smaller --rate"
                )
            total.backward()  # type: ignore[no-untyped-call]
            losses.update({name: loss.item() for name, loss in part.losses.items()})
            sequences += part.sequences
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
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
                f"{self._path} was started with other settings ({state['plan']}): "
                "use the same settings, or another --work directory"
            )
        self._task.network.load_state_dict(state["network"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]
        if self.step >= state.get("steps", self._steps):
            # a finished run stays finished, even after more questions are mined
            self._steps = self.step


def learning_rate_share(done: float, warmup: float) -> float:
    """Returns the learning rate as a share of its peak; `done` is the finished share of the run."""
    return done / warmup if done < warmup else (1 - done) / (1 - warmup)


def autocast(device: str) -> AbstractContextManager[None]:
    """Enables bfloat16 if the processor supports it. Training is then about twice as fast."""
    supported = device != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported()  # noqa: SLF001
    return torch.autocast(device, dtype=torch.bfloat16, enabled=bool(supported))
