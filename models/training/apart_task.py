"""Learning to read with question and passage apart in the lower layers.

A student with all of its teacher's layers sees what its teacher saw. It is told, beside the right
answers, what the teacher makes of every token and passage, and the states of the teacher's upper
layers (Cao et al. 2020, section 3.2).
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from models.network.apart import ApartReader
from models.network.architecture import Reader, every_state
from models.training.loop import Learnt, autocast
from models.training.objective import imitation, states_apart
from models.training.reading_task import ReadingTask, losses


@dataclass(frozen=True, slots=True)
class ApartPlan:
    """How much a student listens to its teacher; the right answers weigh 1."""

    apart: int
    """Layers in which question and passage are apart."""
    answers: float = 2.0
    """Weight of the teacher's spans and relevance."""
    states: float = 1.0
    """Weight of the states of the teacher's upper layers."""


class ApartTask:
    """The objective of `reading`, with a teacher whose layers are never apart."""

    def __init__(self, reading: ReadingTask[ApartReader], teacher: Reader, plan: ApartPlan) -> None:
        self.network, self._reading = reading.network, reading
        self._teacher, self._plan = teacher.eval().requires_grad_(requires_grad=False), plan

    @property
    def steps(self) -> int:
        return self._reading.steps

    @property
    def plan(self) -> dict[str, Any]:
        return {**self._reading.plan, "apart": asdict(self._plan)}

    def learn(self, step: int) -> Learnt:
        """The losses of the questions of `step`, and how far student and teacher are apart."""
        batch = self._reading.batch(step)
        inputs = (batch.ids, batch.mask, batch.types)
        with autocast(batch.ids.device.type):
            states = self.network.states(*inputs)[1:]
            said = self.network.read(states[-1])
            with torch.no_grad():
                model = every_state(self._teacher.body, *inputs)[-len(states) :]
                told = self._teacher.read(model[-1])
        taught = {
            "answers": imitation(said, told, batch.inside) * self._plan.answers,
            "states": self._apart(states, model, batch.mask) * self._plan.states,
        }
        return Learnt(losses(said, batch) | taught, batch.sequences)

    @staticmethod
    def _apart(said: list[Tensor], told: list[Tensor], mask: Tensor) -> Tensor:
        own = [states_apart(*pair, mask) for pair in zip(said, told, strict=True)]
        return torch.stack(own).mean()
