"""Admits questions that can be answered in time, and refuses others under overload.

The work of a question is the number of passages to read. `winnow.policy.load` limits the total work
and the share of each client.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from winnow.deadline import Clock, Deadline
from winnow.domain.question import Question, ReadScope
from winnow.errors import OverloadedError
from winnow.policy.attempts import SingleFlightCaller
from winnow.policy.fairness import FairShares
from winnow.policy.load import LoadSettings, ReadLoad, Ticket
from winnow.policy.recent_refusals import RecentRefusals
from winnow.stateless.metrics import AdmissionMetrics
from winnow.telemetry.tracing.span import span

_MAX_REFUSED_CLIENTS = 1_000
"""Maximum number of clients whose refusals are remembered. Without --keys, callers can choose any
number of client keys.
"""
_ABANDONED_SECONDS = 1.0
"""An abandoned question occupies its slot until this many seconds after its admission.

Otherwise a client could send and cancel questions without a limit. Each of these costs the front
more than a refusal, but would free its slot before the next question arrives.
"""


@dataclass(frozen=True, slots=True)
class AdmittedQuestion:
    """A question that was admitted, with the passages that it may read."""

    question: Question
    """The question. Under load it has fewer passages to read than requested."""
    requested_reads: int
    """Number of passages that the caller requested, over all shards."""
    granted_reads: int
    """Number of passages that may be read, over all shards."""
    client: str = ""
    """Key of the caller, for fair sharing."""


class Admission:
    """Admits questions, or refuses them under overload."""

    def __init__(
        self,
        load: ReadLoad,
        max_in_flight: int,
        metrics: AdmissionMetrics,
        *,
        clock: Clock = time.monotonic,
        typical_reads: int = 1,
    ) -> None:
        """Creates an admission without any question in flight.

        Args:
            load: limits the passages to read.
            max_in_flight: maximum number of concurrent questions, even if they read few passages,
                because each question takes memory.
            metrics: count admitted and refused questions.
            clock: monotonic clock, in seconds.
            typical_reads: number of passages that a question usually reads. A client without room
                for this number is refused early, even if it has room for fewer passages.

        """
        self._load, self._max, self._metrics = load, max_in_flight, metrics
        self._typical_reads, self._clock = typical_reads, clock
        shared = LoadSettings()
        self._slots = FairShares(
            shared.reserved_share, shared.presence_seconds, shared.refusal_seconds, clock
        )
        self._abandoned: deque[tuple[float, str]] = deque()
        """Slots that abandoned questions occupy: the time when each is freed, and the client."""
        self.refused_questions = 0
        """Number of questions refused since the start."""
        self._refusals = RecentRefusals(shared.min_retry_after, _MAX_REFUSED_CLIENTS, clock)

    @property
    def in_flight(self) -> int:
        """Number of questions in flight, including questions that were abandoned a moment ago."""
        return self._slots.total

    @property
    def reads_in_flight(self) -> int:
        """Number of passages that the questions in flight may read."""
        return self._load.reads_in_flight

    def flight_caller(
        self, question: Question, shards: int, deadline: Deadline, client: str
    ) -> SingleFlightCaller:
        """Describes the caller of a question to the single flight of equal questions.

        The description reports the client's work in flight, and whether the admission would now
        grant all requested passages.
        """
        parts = _reads_granted_together(question, shards)
        requested = question.passages_to_read * parts
        return SingleFlightCaller(
            deadline=deadline,
            client=client,
            work=requested,
            work_in_flight=lambda: self._load.in_flight(client),
            has_room_for_attempt=lambda: self._load.would_grant_all(
                requested, deadline.left(), client, parts
            ),
        )

    @contextmanager
    def enter(
        self, question: Question, shards: int, remaining_seconds: float, client: str
    ) -> Iterator[AdmittedQuestion]:
        """Admits a question, and counts its work within the context.

        Args:
            question: the question with the number of passages that the caller requested.
            shards: number of shards of the index.
            remaining_seconds: seconds until the deadline of the question.
            client: key of the caller, for fair sharing.

        Raises:
            DeadlineExceededError: the deadline has passed.
            OverloadedError: the question cannot be answered in time, or exceeds the client's share.

        """
        parts = _reads_granted_together(question, shards)
        requested = question.passages_to_read * parts
        with self._enter(requested, remaining_seconds, client, parts) as reads:
            granted = replace(question, passages_to_read=reads // parts)
            yield AdmittedQuestion(granted, requested, reads, client)

    @contextmanager
    def enter_call(self, remaining_seconds: float, client: str) -> Iterator[None]:
        """Admits a call that reads no passage with a model; it counts as a read of one passage.

        The arguments and errors are those of `enter`.
        """
        with self._enter(1, remaining_seconds, client, 1):
            yield

    @contextmanager
    def _enter(
        self, requested: int, remaining_seconds: float, client: str, parts: int
    ) -> Iterator[int]:
        """Admits reads, and counts them within the context; returns the granted number."""
        with span("admit", {"winnow.passages_asked": requested}) as step:
            ticket = self._admit(requested, remaining_seconds, client, parts)
            step.set("winnow.passages_granted", ticket.reads)
        self._metrics.count_result("dimmed" if ticket.reads < requested else "granted")
        self._slots.take(client, 1)
        self._metrics.reads.set(self._load.reads_in_flight)
        admitted_at, cancelled = self._clock(), True
        try:
            yield ticket.reads
            cancelled = False
        except Exception:
            cancelled = False
            raise
        finally:
            if cancelled and (free_at := admitted_at + _ABANDONED_SECONDS) > self._clock():
                self._abandoned.append((free_at, client))
            else:
                self._slots.release(client, 1)
            self._load.release(ticket)
            self._refusals.forget()
            self._metrics.reads.set(self._load.reads_in_flight)

    def refusal(self, client: str) -> OverloadedError | None:
        """Returns the error that refuses a client's message before it is read, or None.

        A client is refused if it was refused a moment ago, a typical question would have been
        refused, too, and no question has ended since. A client that waits for `retry_after` seconds
        is not refused here.
        """
        wait = self._refusals.retry_after(client)
        if wait is None:
            return None
        self._count_refusal()
        return OverloadedError(
            f"too many questions are in progress, and none has ended since this client was "
            f"refused: try again in {wait:.2f} s",
            wait,
        )

    def _admit(self, reads: int, remaining_seconds: float, client: str, parts: int) -> Ticket:
        try:
            self._check_slots(client)
            return self._load.admit(reads, remaining_seconds, client, parts)
        except OverloadedError as error:
            self._count_refusal()
            if self._has_no_slot(client) or self._load.refuses(client, self._typical_reads):
                self._refusals.add(client, error.retry_after)
            raise

    def _count_refusal(self) -> None:
        self.refused_questions += 1
        self._metrics.count_result("refused")

    def _has_no_slot(self, client: str) -> bool:
        return self._slots.room(client, self._max, self._max) < 1

    def _check_slots(self, client: str) -> None:
        while self._abandoned and self._abandoned[0][0] <= self._clock():
            self._slots.release(self._abandoned.popleft()[1], 1)
        if self._has_no_slot(client):
            self._slots.refuse(client, 1)
            raise OverloadedError(
                f"{self.in_flight} of at most {self._max} questions are in progress, and this "
                "client has its full share: try again later"
            )


def _reads_granted_together(question: Question, shards: int) -> int:
    """The number of reads that are granted together.

    It is the number of shards if every shard reads the same number of passages, and otherwise 1.
    """
    return shards if question.read_scope is ReadScope.PER_SHARD else 1
