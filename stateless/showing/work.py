"""The parts of a front that do work, as the showing core sees them.

Each part registers itself when the front is put together; a front may lack any of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Answering(Protocol):
    """Answers questions: `stateless.answer.core.AnswerCore`."""

    answered: int
    """Number of questions so far."""

    @property
    def ready(self) -> bool:
        """Whether enough shards were found to answer."""


class Admitting(Protocol):
    """Lets work in: the admissions of texts and passages."""

    @property
    def inside(self) -> int:
        """Amount of work in hand."""


class AdmittingQuestions(Admitting, Protocol):
    """Lets questions in: `stateless.answer.admission.Admission`."""

    refused: int
    """Number of questions so far."""

    @property
    def reads(self) -> int:
        """Number of passages that the questions in hand may read."""


def _unknown() -> float | None:
    return None


@dataclass(slots=True, kw_only=True)
class Work:
    """The parts of a front that do work; None where it has no such part."""

    answering: Answering | None = None
    questions: AdmittingQuestions | None = None
    texts: Admitting | None = None
    passages: Admitting | None = None
    seconds_per_read: Callable[[], float | None] = _unknown
    """Seconds per read of all content nodes together; None if it is not known."""
