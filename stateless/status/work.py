"""The interfaces by which the parts of a front report their work to the status core.

Each part is set in `FrontWork` when the front is composed. A front may lack any part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class AnswerProgress(Protocol):
    """What the core that answers questions reports. `AnswerCore` implements it."""

    @property
    def answered_questions(self) -> int:
        """Number of questions answered since the start."""

    @property
    def ready(self) -> bool:
        """Whether enough shards were found to answer questions."""


class WorkInFlight(Protocol):
    """What the admission of texts, of windows of texts, or of fed passages reports."""

    @property
    def in_flight(self) -> int:
        """Number of texts, windows or passages in flight."""


class QuestionsInFlight(WorkInFlight, Protocol):
    """What the admission of questions reports. `stateless.answer.admission` implements it."""

    @property
    def refused_questions(self) -> int:
        """Number of questions refused since the start."""

    @property
    def reads_in_flight(self) -> int:
        """Number of passages that the questions in flight may read."""


@dataclass(slots=True, kw_only=True)
class FrontWork:
    """The parts of a front that report work; None for each part that the front lacks."""

    answering: AnswerProgress | None = None
    questions: QuestionsInFlight | None = None
    texts: WorkInFlight | None = None
    """Texts to which heads are applied."""
    windows: WorkInFlight | None = None
    """Windows of callers' texts that are read."""
    passages: WorkInFlight | None = None
    seconds_per_read: Callable[[], float | None] = lambda: None
    """Returns the seconds per passage read of all content nodes together; None if unknown."""
