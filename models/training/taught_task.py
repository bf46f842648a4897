"""Trains a student reader with a teacher.

A student learns the right answers, the teacher's logits, and some of the teacher's states. A
distilled student has fewer layers and learns the states of the last layer. A split reader has all
layers and learns the states of the teacher's upper layers (Cao et al. 2020, section 3.2).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from models.network.architecture import Reader, all_states, hidden_states
from models.network.split_reader import SplitReader
from models.training.examples import Batch
from models.training.loop import StepLosses, autocast
from models.training.objective import imitation_loss, span_imitation_loss, states_distance
from models.training.reading_task import MAX_ATTENTION, ReadingTask

Student = TypeVar("Student", bound=Reader | SplitReader)
Inputs = tuple[Tensor, Tensor, Tensor]
"""Ids, mask and types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeachingPlan:
    """Weights of the imitation losses of a student. Field names are keys in checkpoints.

    The loss of the right answers has weight 1.
    """

    answers: float = 2.0
    """Weight of the loss of imitating the teacher's spans and relevance."""
    states: float = 1.0
    """Weight of the loss of imitating the teacher's states."""
    fading: float = 0.0
    """Share of the run over which the weight of the states falls to 0; 0 keeps it constant."""
    ranks: bool = True
    """Whether the student also learns the teacher's ranking of passages."""

    def states_weight(self, done: float) -> float:
        """Returns the weight of the states loss. `done` is the finished share of the run."""
        return self.states * (max(1 - done / self.fading, 0.0) if self.fading else 1.0)


class TaughtTask(ABC, Generic[Student]):
    """Training task that adds the losses of imitating a teacher to a reading task."""

    plan_key: ClassVar[str]
    """Key of the plan in a checkpoint."""

    def __init__(self, reading: ReadingTask[Student], teacher: Reader, plan: TeachingPlan) -> None:
        self.network, self._reading = reading.network, reading
        self._teacher, self._plan = teacher.eval().requires_grad_(requires_grad=False), plan

    @property
    def steps(self) -> int:
        return self._reading.steps

    @property
    def settings_of_result(self) -> dict[str, Any]:
        return {**self._reading.settings_of_result, self.plan_key: asdict(self._plan)}

    def partial_losses(self, step: int) -> Iterator[StepLosses]:
        """Yields the losses of `step`, with the divergence of student and teacher."""
        for batch, share in self._reading.batch(step).parts(MAX_ATTENTION):
            yield self._losses(batch, step / self.steps).scaled(share)

    def _losses(self, batch: Batch, done: float) -> StepLosses:
        inputs = (batch.ids, batch.mask, batch.types)
        with autocast(batch.ids.device.type):
            states = self._student_states(inputs)
            logits = self.network.read(states[-1])
            with torch.no_grad():
                teacher_states = self._teacher_states(inputs, len(states))
                target = self._teacher.read(teacher_states[-1])
        imitate = imitation_loss if self._plan.ranks else span_imitation_loss
        distance = self._states_distance(states, teacher_states, batch.mask)
        imitation = {
            "answers": imitate(logits, target, batch.in_passage) * self._plan.answers,
            "states": distance * self._plan.states_weight(done),
        }
        return StepLosses(self._reading.losses(logits, batch) | imitation, batch.sequences)

    def _states_distance(
        self, student: list[Tensor], teacher: list[Tensor], mask: Tensor
    ) -> Tensor:
        """Returns the mean distance of the states of all compared layers."""
        masks = [mask] * len(student)
        if not self._plan.ranks:
            masks[-1] = mask.clone()
            masks[-1][:, 0] = 0  # relevance depends on the first token's last state
        distances = [states_distance(*each) for each in zip(student, teacher, masks, strict=True)]
        return torch.stack(distances).mean()

    @abstractmethod
    def _student_states(self, inputs: Inputs) -> list[Tensor]:
        """Returns the student's compared states by layer. The heads read the last states."""

    @abstractmethod
    def _teacher_states(self, inputs: Inputs, layers: int) -> list[Tensor]:
        """Returns the states of the teacher's last `layers` layers."""


@dataclass(frozen=True, slots=True)
class DistillingPlan(TeachingPlan):
    """Training settings of a smaller reader."""

    layers: int
    """Layers of the student."""


class DistillingTask(TaughtTask[Reader]):
    """Training task of a smaller reader."""

    plan_key = "distilling"

    def _student_states(self, inputs: Inputs) -> list[Tensor]:
        return [hidden_states(self.network.body, *inputs)]

    def _teacher_states(self, inputs: Inputs, layers: int) -> list[Tensor]:
        return [hidden_states(self._teacher.body, *inputs)]


@dataclass(frozen=True, slots=True)
class SplitReaderPlan(TeachingPlan):
    """Training settings of a split reader."""

    apart: int
    """Number of lower layers that see question and passage separately."""
    neurons: int = 0
    """Neurons to keep in the feed-forward part of every upper layer; 0 keeps all."""
    begun: str = ""
    """Path of a checkpoint or bundle with the initial weights; empty for the teacher's weights."""
    averaged: bool = False
    """Whether the final weights are the mean of the initial and the trained weights."""


class SplitTask(TaughtTask[SplitReader]):
    """Training task of a split reader. The teacher is a full cross-encoder."""

    plan_key = "apart"

    def _student_states(self, inputs: Inputs) -> list[Tensor]:
        return self.network.states(*inputs)[1:]

    def _teacher_states(self, inputs: Inputs, layers: int) -> list[Tensor]:
        return all_states(self._teacher.body, *inputs)[-layers:]
