"""The parts of a front that report their work to the showing core.

Each part registers itself when the front is composed. A front may lack any part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Answering(Protocol):
    """The core that answers questions: `stateless.answer.core.AnswerCore`."""

    answered_questions: int
    """Number of questions answered since the start."""

    @property
    def ready(self) -> bool:
        """Whether enough shards were found to answer."""


class WorkInFlight(Protocol):
    """The admission of texts or of passages."""

    @property
    def in_flight(self) -> int:
        """Number of texts or passages in flight."""


class QuestionsInFlight(WorkInFlight, Protocol):
    """The admission of questions: `stateless.answer.admission.Admission`."""

    refused_questions: int
    """Number of questions refused since the start."""

    @property
    def reads(self) -> int:
        """Number of passages that the questions in flight may read."""


@dataclass(slots=True, kw_only=True)
class Work:
    """The parts of a front that do work; None for each part that it lacks."""

    answering: Answering | None = None
    questions: QuestionsInFlight | None = None
    texts: WorkInFlight | None = None
    passages: WorkInFlight | None = None
    seconds_per_read: Callable[[], float | None] = lambda: None
    """Seconds per passage of all content nodes together; None if it is unknown."""
