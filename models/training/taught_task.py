"""Learning to read with a teacher that reads better.

A student is trained on the right answers, on its teacher's logits of every token and passage, and
on some of the teacher's states. A distilled student has fewer layers, and is given the last states.
A split reader has all layers, and is given the states of the teacher's upper layers (Cao et al.
2020, section 3.2).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from models.network.architecture import Reader, every_state, hidden_states
from models.network.split_reader import SplitReader
from models.training.examples import Batch
from models.training.loop import StepLosses, autocast
from models.training.objective import imitation, span_imitation, states_distance
from models.training.reading_task import PAIRS, ReadingTask

Student = TypeVar("Student", bound=Reader | SplitReader)
Inputs = tuple[Tensor, Tensor, Tensor]
"""Ids, mask and types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeachingPlan:
    """Weights of the teacher in a student's loss; the right answers weigh 1."""

    answers: float = 2.0
    """Weight of the teacher's spans and relevance."""
    states: float = 1.0
    """Weight of the teacher's states."""
    fading: float = 0.0
    """Share of the run over which that weight falls to 0; with 0 it is constant."""
    ranks: bool = True
    """Whether the teacher also tells which passage answers."""

    def weight(self, done: float) -> float:
        """Weight of the teacher's states when `done` of the run has passed."""
        return self.states * (max(1 - done / self.fading, 0.0) if self.fading else 1.0)


class TaughtTask(ABC, Generic[Student]):
    """The objective of `reading`, with a teacher."""

    told_as: ClassVar[str]
    """Key of the plan in a checkpoint."""

    def __init__(self, reading: ReadingTask[Student], teacher: Reader, plan: TeachingPlan) -> None:
        self.network, self._reading = reading.network, reading
        self._teacher, self._plan = teacher.eval().requires_grad_(requires_grad=False), plan

    @property
    def steps(self) -> int:
        return self._reading.steps

    @property
    def plan(self) -> dict[str, Any]:
        return {**self._reading.plan, self.told_as: asdict(self._plan)}

    def parts(self, step: int) -> Iterator[StepLosses]:
        """Yields the losses of `step`, with the divergence of student and teacher."""
        for batch, share in self._reading.batch(step).parts(PAIRS):
            yield self._learn(batch, step / self.steps).times(share)

    def _learn(self, batch: Batch, done: float) -> StepLosses:
        inputs = (batch.ids, batch.mask, batch.types)
        with autocast(batch.ids.device.type):
            states = self._states(inputs)
            logits = self.network.read(states[-1])
            with torch.no_grad():
                model = self._model(inputs, len(states))
                target = self._teacher.read(model[-1])
        imitated = imitation if self._plan.ranks else span_imitation
        taught = {
            "answers": imitated(logits, target, batch.inside) * self._plan.answers,
            "states": self._apart(states, model, batch.mask) * self._plan.weight(done),
        }
        return StepLosses(self._reading.losses(logits, batch) | taught, batch.sequences)

    def _apart(self, logits: list[Tensor], target: list[Tensor], mask: Tensor) -> Tensor:
        masks = [mask] * len(logits)
        if not self._plan.ranks:
            masks[-1] = mask.clone()
            masks[-1][:, 0] = 0  # relevance is read out of the first token's last state
        own = [states_distance(*each) for each in zip(logits, target, masks, strict=True)]
        return torch.stack(own).mean()

    @abstractmethod
    def _states(self, inputs: Inputs) -> list[Tensor]:
        """Returns the student's states that are compared, by layer; the last of them are read."""

    @abstractmethod
    def _model(self, inputs: Inputs, layers: int) -> list[Tensor]:
        """Returns the teacher's states in as many of its last layers."""


@dataclass(frozen=True, slots=True)
class DistillingPlan(TeachingPlan):
    """Settings of the training of a smaller student."""

    layers: int
    """Layers of the student."""


class DistillingTask(TaughtTask[Reader]):
    """The objective of `reading`, with a larger teacher."""

    told_as = "distilling"

    def _states(self, inputs: Inputs) -> list[Tensor]:
        return [hidden_states(self.network.body, *inputs)]

    def _model(self, inputs: Inputs, layers: int) -> list[Tensor]:
        return [hidden_states(self._teacher.body, *inputs)]


@dataclass(frozen=True, slots=True)
class SplitPlan(TeachingPlan):
    """Settings of the training of a split reader."""

    apart: int
    """Lower layers that are split."""
    neurons: int = 0
    """Neurons that are kept in the feed-forward part of every upper layer; 0 keeps all."""
    begun: str = ""
    """Checkpoint or bundle of the initial weights; empty for the teacher's."""
    averaged: bool = False
    """Whether the reader is the mean of the initial and the trained weights."""


class SplitTask(TaughtTask[SplitReader]):
    """The objective of `reading` for a split reader, with a teacher that is not split."""

    told_as = "apart"

    def _states(self, inputs: Inputs) -> list[Tensor]:
        return self.network.states(*inputs)[1:]

    def _model(self, inputs: Inputs, layers: int) -> list[Tensor]:
        return every_state(self._teacher.body, *inputs)[-layers:]
