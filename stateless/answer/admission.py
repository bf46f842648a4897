"""Lets questions in, as long as they can be answered in time.

Knows how much work a question is, in passages to read. `winnow.policy.load` says how much is too
much, and how much each client may have.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from winnow.deadline import Clock, Deadline
from winnow.domain.question import Question, ReadScope
from winnow.errors import OverloadedError
from winnow.policy.attempts import Asker
from winnow.policy.fairness import FairShares
from winnow.policy.load import LoadSettings, ReadLoad, Ticket
from winnow.policy.refusals import Refusals
from winnow.stateless.metrics import AdmissionMetrics
from winnow.telemetry.tracing.span import span

_MOST_REMEMBERED = 1_000
"""Most clients whose refusals are remembered; keys come from outside."""
_GIVEN_UP = 1.0
"""Seconds after it was let in for which an abandoned question keeps its place. Without it, asking
and giving up at once would have no bound: it costs a front more than a refusal, and frees its place
before the next question comes.
"""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A question that was let in."""

    question: Question
    """The question, with fewer passages to read if there is too much to do."""
    asked: int
    """Number of passages that the caller wanted to be read, over all shards."""
    granted: int
    """Number of passages that may be read, over all shards."""
    client: str = ""
    """Key of the caller, for fair sharing."""


class Admission:
    """Lets questions in."""

    def __init__(
        self,
        load: ReadLoad,
        most: int,
        metrics: AdmissionMetrics,
        *,
        clock: Clock = time.monotonic,
        usual: int = 1,
    ) -> None:
        """Lets nothing in yet.

        Args:
            load: says how much is too much.
            most: most questions at once, however few passages they need; they take memory, too.
            metrics: count questions let in and refused.
            clock: seconds.
            usual: number of passages that a question usually reads. A client without room for these
                is full, though it may have room for fewer.

        """
        self._load, self._most, self._metrics, self._usual = load, most, metrics, usual
        shared = LoadSettings()
        self._places = FairShares(shared.kept, shared.here_for, shared.hungry_for, clock)
        self._clock = clock
        self._given_up: deque[tuple[float, str]] = deque()
        """The places of abandoned questions: when each is free again, and its client."""
        self.refused = 0
        """Number of questions refused."""
        self._refusals = Refusals(shared.shortest_wait, _MOST_REMEMBERED, clock)

    @property
    def inside(self) -> int:
        """Number of questions being answered, or given up by their callers a moment ago."""
        return self._places.total

    @property
    def reads(self) -> int:
        """Number of passages that the questions being answered may read."""
        return self._load.reads

    def asker(self, question: Question, shards: int, deadline: Deadline, client: str) -> Asker:
        """The caller of a question that others may ask, too.

        It tells how much is done for its client, and whether all of its passages would be read.
        """
        parts = _parts(question, shards)
        asked = question.passages_to_read * parts
        return Asker(
            deadline=deadline,
            client=client,
            work=asked,
            in_hand=lambda: self._load.held(client),
            room=lambda: self._load.grants_all(asked, deadline.left(), client, parts),
        )

    @contextmanager
    def enter(
        self, question: Question, shards: int, left: float, client: str
    ) -> Iterator[Admitted]:
        """Counts a question and its work while it is answered.

        Args:
            question: the question as it was asked.
            shards: number of shards of the index.
            left: seconds before its deadline.
            client: key of the caller, for fair sharing.

        Raises:
            DeadlineExceededError: no time is left at all.
            OverloadedError: it cannot be answered in time, or would take what others need.

        """
        parts = _parts(question, shards)
        asked = question.passages_to_read * parts
        with span("admit", {"winnow.passages_asked": asked}) as step:
            ticket = self._ticket(asked, left, client, parts)
            step.set("winnow.passages_granted", ticket.reads)
        self._metrics.admitted("dimmed" if ticket.reads < asked else "granted")
        self._places.take(client, 1)
        self._metrics.reads.set(self._load.reads)
        began, given_up = self._clock(), True
        try:
            granted = replace(question, passages_to_read=ticket.reads // parts)
            yield Admitted(granted, asked, ticket.reads, client)
            given_up = False
        except Exception:
            given_up = False
            raise
        finally:  # cancelled, if it is neither answered nor failed
            if given_up and (free := began + _GIVEN_UP) > self._clock():
                self._given_up.append((free, client))
            else:
                self._places.give_back(client, 1)
            self._load.release(ticket)
            self._refusals.forget()
            self._metrics.reads.set(self._load.reads)

    def refusal(self, client: str) -> OverloadedError | None:
        """Why a question of a client is refused before its message is read; None if it is not.

        It is if its client was refused a moment ago, as a usual question would have been, and no
        question has ended since. A client that waits as long as it was told to is not refused here.
        """
        wait = self._refusals.wait(client)
        if wait is None:
            return None
        self._refuse()
        return OverloadedError(
            f"there was no room a moment ago, and no question has been answered since; try again "
            f"in {wait:.2f} s",
            wait,
        )

    def _ticket(self, reads: int, left: float, client: str, parts: int) -> Ticket:
        try:
            self._check_places(client)
            return self._load.admit(reads, left, client, parts)
        except OverloadedError as error:
            self._refuse()
            if self._full(client) or self._load.closed_to(client, self._usual):
                self._refusals.add(client, error.retry_after)
            raise

    def _refuse(self) -> None:
        self.refused += 1
        self._metrics.admitted("refused")

    def _full(self, client: str) -> bool:
        """Whether there is no place for a question of a client, however few passages it reads."""
        return self._places.room(client, self._most, self._most) < 1

    def _check_places(self, client: str) -> None:
        while self._given_up and self._given_up[0][0] <= self._clock():
            self._places.give_back(self._given_up.popleft()[1], 1)
        if self._full(client):
            self._places.refuse(client, 1)
            raise OverloadedError(
                f"{self.inside} of at most {self._most} questions are in progress, and this client "
                "has its share: try again later"
            )


def _parts(question: Question, shards: int) -> int:
    """Number of reads that are granted together: one for each shard, where all read alike."""
    return shards if question.read_scope is ReadScope.PER_SHARD else 1
