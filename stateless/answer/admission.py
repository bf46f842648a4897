"""Where questions are let in, as long as they can be answered in time.

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
from winnow.quoting import are
from winnow.stateless.metrics import AdmissionMetrics
from winnow.telemetry.tracing.span import span

_MOST_REMEMBERED = 1_000
"""Clients whose refusals are remembered; keys come from outside."""
_GIVEN_UP = 1.0
"""Seconds after it was let in for which a question that its caller gives up keeps its place. Asking
and giving up at once would otherwise have no bound: it takes a front as much as a refusal and more,
and frees its place before the next one comes.
"""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A question that was let in."""

    question: Question
    """As it may be asked: with fewer passages to read, if there is too much to do."""
    asked: int
    """Passages that the caller wanted to be read, over all shards."""
    granted: int
    """Passages that may be read, over all shards."""
    client: str = ""
    """A key of the caller, for sharing fairly."""


class Admission:
    """Lets questions in."""

    def __init__(
        self,
        load: ReadLoad,
        most: int,
        metrics: AdmissionMetrics,
        clock: Clock = time.monotonic,
        usual: int = 1,
    ) -> None:
        """Lets nothing in yet.

        Args:
            load: says how much is too much.
            most: questions at once, however few passages they need; they take memory, too.
            metrics: count what becomes of questions.
            clock: seconds.
            usual: passages that a question wants to be read. A client that has no room for these is
                full, though it may have some for fewer.

        """
        self._load, self._most, self._metrics, self._usual = load, most, metrics, usual
        shared = LoadSettings()
        self._places = FairShares(shared.kept, shared.here_for, shared.hungry_for, clock)
        self._clock = clock
        self._given_up: deque[tuple[float, str]] = deque()
        """When the place of a question that was given up is free again, and whose it is."""
        self.refused = 0
        """Questions so far."""
        self._refusals = Refusals(shared.shortest_wait, _MOST_REMEMBERED, clock)

    @property
    def inside(self) -> int:
        """Questions being answered, or given up by their callers a moment ago."""
        return self._places.total

    @property
    def reads(self) -> int:
        """Passages that the questions being answered may read."""
        return self._load.reads

    def asker(self, question: Question, shards: int, deadline: Deadline, client: str) -> Asker:
        """Somebody with a question that others may ask, too: how much is done for its client, and
        whether all of its passages would be read.
        """
        parts = _parts(question, shards)
        asked = question.passages_to_read * parts
        return Asker(
            deadline,
            client,
            asked,
            lambda: self._load.held(client),
            lambda: self._load.grants_all(asked, deadline.left(), client, parts),
        )

    @contextmanager
    def enter(
        self, question: Question, shards: int, left: float, client: str
    ) -> Iterator[Admitted]:
        """Counts a question and its work while it is answered.

        Args:
            question: as it was asked.
            shards: shards of the index.
            left: seconds before its deadline.
            client: a key of the caller, for sharing fairly.

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
            self._leave(client, began + _GIVEN_UP if given_up else began)
            self._load.release(ticket)
            self._refusals.forget()
            self._metrics.reads.set(self._load.reads)

    def refusal(self, client: str) -> OverloadedError | None:
        """Why a question is refused before anybody looks at it, if it is.

        Its client was refused a moment ago, a usual question would have been, too, and nobody's has
        ended since. Nobody who waits for as long as it was told to is refused so.
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
            if self._closed_to(client):
                self._refusals.add(client, error.retry_after)
            raise

    def _refuse(self) -> None:
        self.refused += 1
        self._metrics.admitted("refused")

    def _closed_to(self, client: str) -> bool:
        """Whether a usual question of a client would be refused, however long it may take."""
        places = self._places.room(client, self._most, self._most)
        return places < 1 or self._load.closed_to(client, self._usual)

    def _leave(self, client: str, free: float) -> None:
        """Frees a place, now or when it is `free`."""
        if free > self._clock():
            self._given_up.append((free, client))
        else:
            self._places.give_back(client, 1)

    def _clear(self) -> None:
        """Frees the places of questions that were given up long enough ago."""
        while self._given_up and self._given_up[0][0] <= self._clock():
            self._places.give_back(self._given_up.popleft()[1], 1)

    def _check_places(self, client: str) -> None:
        self._clear()
        if self._places.room(client, self._most, self._most) < 1:
            self._places.refuse(client, 1)
            raise OverloadedError(
                f"{are(self.inside, 'question')} being answered already, of at most {self._most}, "
                "and no client gets more than its share; try again"
            )


def _parts(question: Question, shards: int) -> int:
    """Reads that are granted together: one for each shard, where all read alike."""
    return shards if question.read_scope is ReadScope.PER_SHARD else 1
