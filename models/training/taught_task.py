"""Learning to read, with a teacher who reads better.

A student is told, beside the right answers, what its teacher makes of every token and passage, and
some of the teacher's states. Which states these are is said by the tasks that are built on this.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from models.network.apart import ApartReader
from models.network.architecture import Reader
from models.training.batching import Batch
from models.training.loop import Learnt, autocast
from models.training.objective import imitation, span_imitation, states_apart
from models.training.reading_task import PAIRS, ReadingTask

Student = TypeVar("Student", bound=Reader | ApartReader)
Inputs = tuple[Tensor, Tensor, Tensor]
"""Ids, mask and types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeachingPlan:
    """How much a student listens to its teacher; the right answers weigh 1."""

    answers: float = 2.0
    """Weight of the teacher's spans and relevance."""
    states: float = 1.0
    """Weight of the teacher's states."""
    fading: float = 0.0
    """Share of the run over which that weight falls to nothing; 0: it stays as it is."""
    ranks: bool = True
    """Whether the teacher also tells which passage answers."""

    def weight(self, done: float) -> float:
        """Weight of the teacher's states when `done` of the run has passed."""
        return self.states * (max(1 - done / self.fading, 0.0) if self.fading else 1.0)


class TaughtTask(ABC, Generic[Student]):
    """The objective of `reading`, with a teacher."""

    told_as: ClassVar[str]
    """What the plan is called among the other plans."""

    def __init__(self, reading: ReadingTask[Student], teacher: Reader, plan: TeachingPlan) -> None:
        self.network, self._reading = reading.network, reading
        self._teacher, self._plan = teacher.eval().requires_grad_(requires_grad=False), plan

    @property
    def steps(self) -> int:
        return self._reading.steps

    @property
    def plan(self) -> dict[str, Any]:
        return {**self._reading.plan, self.told_as: asdict(self._plan)}

    def parts(self, step: int) -> Iterator[Learnt]:
        """The losses of the questions of `step`, and how far student and teacher are apart."""
        for batch, share in self._reading.batch(step).parts(PAIRS):
            yield self._learn(batch, step / self.steps).times(share)

    def _learn(self, batch: Batch, done: float) -> Learnt:
        inputs = (batch.ids, batch.mask, batch.types)
        with autocast(batch.ids.device.type):
            states = self._states(inputs)
            said = self.network.read(states[-1])
            with torch.no_grad():
                model = self._model(inputs, len(states))
                told = self._teacher.read(model[-1])
        imitated = imitation if self._plan.ranks else span_imitation
        taught = {
            "answers": imitated(said, told, batch.inside) * self._plan.answers,
            "states": self._apart(states, model, batch.mask) * self._plan.weight(done),
        }
        return Learnt(self._reading.losses(said, batch) | taught, batch.sequences)

    def _apart(self, said: list[Tensor], told: list[Tensor], mask: Tensor) -> Tensor:
        masks = [mask] * len(said)
        if not self._plan.ranks:
            masks[-1] = mask.clone()
            masks[-1][:, 0] = 0  # relevance is read out of the first token's last state
        own = [states_apart(*each) for each in zip(said, told, masks, strict=True)]
        return torch.stack(own).mean()

    @abstractmethod
    def _states(self, inputs: Inputs) -> list[Tensor]:
        """The student's states that are compared, by layer; the last of them are read."""

    @abstractmethod
    def _model(self, inputs: Inputs, layers: int) -> list[Tensor]:
        """The teacher's states in as many of its last layers."""
