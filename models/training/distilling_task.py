"""Learning to read as a larger reader does.

A student sees what its teacher saw, and is told what the teacher's last states are, since it has
the teacher's heads.
"""

from dataclasses import dataclass

from torch import Tensor

from models.network.architecture import Reader, hidden_states
from models.training.taught_task import Inputs, TaughtTask, TeachingPlan


@dataclass(frozen=True, slots=True)
class DistillingPlan(TeachingPlan):
    """How a smaller student learns."""

    layers: int
    """Layers of the student."""


class DistillingTask(TaughtTask[Reader]):
    """The objective of `reading`, with a larger teacher."""

    told_as = "distilling"

    def _states(self, inputs: Inputs) -> list[Tensor]:
        return [hidden_states(self.network.body, *inputs)]

    def _model(self, inputs: Inputs, layers: int) -> list[Tensor]:
        return [hidden_states(self._teacher.body, *inputs)]
