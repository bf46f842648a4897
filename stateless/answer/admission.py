"""Where questions are let in, as long as they can be answered in time.

Knows how much work a question is, in passages to read; how much is too much, and what each client
may have, is the business of `winnow.policy.load`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from stateless.metrics import AdmissionMetrics
from winnow.domain.question import Question, ReadScope
from winnow.errors import OverloadedError
from winnow.policy.load import Load


@dataclass(frozen=True, slots=True)
class Admitted:
    """A question that was let in."""

    question: Question
    """As it may be asked: with fewer passages to read, if there is too much to do."""
    asked: int
    """Passages that should have been read, over all shards."""
    granted: int
    """Passages that may be read, over all shards."""


class Admission:
    """Lets questions in."""

    def __init__(self, load: Load, most: int, metrics: AdmissionMetrics) -> None:
        """`most`: questions at once, whatever they ask for; they take memory, too."""
        self._load, self._most, self._metrics = load, most, metrics
        self.inside = 0

    @contextmanager
    def enter(
        self, question: Question, shards: int, left: float, client: str
    ) -> Iterator[Admitted]:
        """Counts a question and its work while it is answered.

        Args:
            question: as it was asked.
            shards: that there are.
            left: seconds before its deadline.
            client: a key of whoever asks, for sharing fairly.

        Raises:
            OverloadedError: it cannot be answered in time, or would take what is others'.

        """
        parts = shards if question.read_scope is ReadScope.PER_SHARD else 1
        asked = question.passages_to_read * parts
        try:
            if self.inside >= self._most:
                raise OverloadedError(
                    f"{self._most} questions are being answered already; try again"
                )
            ticket = self._load.admit(asked, left, client)
        except OverloadedError:
            self._metrics.admitted("refused")
            raise
        passages = max(ticket.reads // parts, 1)
        self._metrics.admitted("dimmed" if passages * parts < asked else "granted")
        self.inside += 1
        self._metrics.reads.set(self._load.reads)
        try:
            yield Admitted(replace(question, passages_to_read=passages), asked, passages * parts)
        finally:
            self.inside -= 1
            self._load.release(ticket)
            self._metrics.reads.set(self._load.reads)
