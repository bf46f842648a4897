"""Learning to read with question and passage apart in the lower layers.

A student with all of its teacher's layers sees what its teacher saw, and is told the states of the
teacher's upper layers (Cao et al. 2020, section 3.2).
"""

from dataclasses import dataclass

from torch import Tensor

from models.network.apart import ApartReader
from models.network.architecture import every_state
from models.training.taught_task import Inputs, TaughtTask, TeachingPlan


@dataclass(frozen=True, slots=True)
class ApartPlan(TeachingPlan):
    """How a student learns whose lower layers are apart."""

    apart: int
    """Layers in which question and passage are apart."""
    neurons: int = 0
    """Left in the feed-forward part of every upper layer; 0 leaves all."""
    begun: str = ""
    """The checkpoint or the bundle whose weights it begins with; none: its teacher's."""
    averaged: bool = False
    """Whether the reader is the mean of these weights and of those that the run comes to."""


class ApartTask(TaughtTask[ApartReader]):
    """The objective of `reading`, with a teacher whose layers are never apart."""

    told_as = "apart"

    def _states(self, inputs: Inputs) -> list[Tensor]:
        return self.network.states(*inputs)[1:]

    def _model(self, inputs: Inputs, layers: int) -> list[Tensor]:
        return every_state(self._teacher.body, *inputs)[-layers:]
