"""Learning to read as a larger reader does.

A student sees what its teacher saw, and is told beside the right answers what the teacher makes of
every token and passage, and what the teacher's last states are, since it has the teacher's heads.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch

from models.network.architecture import Reader, hidden_states
from models.training.loop import Learnt, autocast
from models.training.objective import imitation, states_apart
from models.training.reading_task import ReadingTask, losses


@dataclass(frozen=True, slots=True)
class DistillingPlan:
    """How much a student listens to its teacher; the right answers weigh 1."""

    layers: int
    """Layers of the student."""
    answers: float = 2.0
    """Weight of the teacher's spans and relevance."""
    states: float = 1.0
    """Weight of the teacher's last states."""


class DistillingTask:
    """The objective of `reading`, with a teacher."""

    def __init__(self, reading: ReadingTask[Reader], teacher: Reader, plan: DistillingPlan) -> None:
        self.network, self._reading = reading.network, reading
        self._teacher, self._plan = teacher.eval().requires_grad_(requires_grad=False), plan

    @property
    def steps(self) -> int:
        return self._reading.steps

    @property
    def plan(self) -> dict[str, Any]:
        return {**self._reading.plan, "distilling": asdict(self._plan)}

    def learn(self, step: int) -> Learnt:
        """The losses of the questions of `step`, and how far student and teacher are apart."""
        batch = self._reading.batch(step)
        inputs = (batch.ids, batch.mask, batch.types)
        with autocast(batch.ids.device.type):
            states = hidden_states(self.network.body, *inputs)
            said = self.network.read(states)
            with torch.no_grad():
                model = hidden_states(self._teacher.body, *inputs)
                told = self._teacher.read(model)
        taught = {
            "answers": imitation(said, told, batch.inside) * self._plan.answers,
            "states": states_apart(states, model, batch.mask) * self._plan.states,
        }
        return Learnt(losses(said, batch) | taught, batch.sequences)
