"""One call to a pool of replicas: sent, hedged where it is late, retried where it fails.

Follows the policies: takes replicas, sends, waits, sends again, and ends every attempt it began.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, GenerationGoneError, WinnowError
from winnow.replicas.observer import PoolObserver
from winnow.replicas.policy.hedge_schedule import HedgeSchedule
from winnow.replicas.policy.hedging import HedgeBudget, HedgeDelay
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.replicas import ANY, Attempt, Preference, Replica
from winnow.replicas.pool import ReplicaPool, Send, SentAttempt

Backend = TypeVar("Backend")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRequest(Generic[Backend, Result]):
    """A request that any replica of a pool can answer."""

    kind: str
    """Requests of a kind take equally long for equal work."""
    work: int
    """How much work it is, in any unit; 0 for hardly any."""
    send: Send[Backend, Result]
    deadline: Deadline
    brief: bool = False
    """Whether it may probe a replica as soon as its ejection ends: being late costs it least."""
    preference: Preference = ANY
    missing: Callable[[Result], int] = lambda _: 0
    """How much of what was asked for a result leaves out."""
    answered: Callable[[Replica, Result], None] = lambda *_: None
    """Is told each result and the replica that gave it."""


class HedgedCall(Generic[Backend, Result]):
    """A call in progress."""

    def __init__(
        self,
        request: PoolRequest[Backend, Result],
        pool: ReplicaPool[Backend],
        *,
        schedule: HedgeSchedule,
        delay: HedgeDelay,
        budget: HedgeBudget,
        observer: PoolObserver,
        noun: str = "",
    ) -> None:
        """`delay` learns how long the call took; `noun`: what traces say is asked."""
        self._request, self._schedule, self._pool = request, schedule, pool
        self._delay, self._budget, self._observer = delay, budget, observer
        self._noun = noun
        self._running: dict[asyncio.Task[Result], SentAttempt[Result]] = {}
        self._hedge: SentAttempt[Result] | None = None
        self._retry: SentAttempt[Result] | None = None
        self._best: SentAttempt[Result] | None = None
        """Has ended, and left out least of all that have a result."""
        self._gone: GenerationGoneError | None = None

    async def run(self) -> Result | None:
        """The first whole result, else the best one; None if there is no replica at all.

        Raises:
            GenerationGoneError: no replica answered, and one no longer holds the generation: the
                caller may retrieve again.
            WinnowError: no replica answered; the error of the last attempt.

        """
        self._budget.earn()
        if self._start() is None:
            return None
        try:
            while self._best is None or self._may_be_bettered(self._best):
                wait = self._schedule.grace if self._best else self._schedule.next()
                done, _ = await asyncio.wait(
                    self._running, timeout=wait, return_when=asyncio.FIRST_COMPLETED
                )
                if not done and self._best is not None:
                    break
                if not done:
                    self._send_hedge()
                # in the order in which they were sent: a set has none
                for task in [each for each in self._running if each in done]:
                    self._ended(self._running.pop(task))
            return self._won(self._best)
        finally:
            for left in self._running.values():
                self._pool.end(left, self._outcome(left, None))

    def _start(self, why: str = "ask", repeat: bool = False) -> SentAttempt[Result] | None:
        """Sends to a replica not tried yet, even to an ejected one; None if there is none.

        `repeat`: it may be one that was tried if no other is preferred.
        """
        request = self._request
        attempt = self._pool.replicas.take(
            self._schedule.tried, request.brief, request.preference, repeat
        )
        return self._sent(attempt, why) if attempt is not None else None

    def _send_hedge(self) -> None:
        overdue = self._schedule.late()
        running = [each.attempt for each in self._running.values()]
        # a replica that hangs is late with every request: only the first waits until it is overdue
        urgent = overdue or any(attempt.replica.record.suspect for attempt in running)
        # a request that waits for a write is late for that, and callers name writes as they like
        if not urgent and any(attempt.waits for attempt in running):
            return
        # a late request must not make others late
        attempt = self._pool.replicas.take_spare(
            self._schedule.tried, urgent, self._request.preference
        )
        if attempt is None:
            return
        if not self._budget.spend(urgent):
            self._pool.untake(attempt)
            self._observer.hedged("refused")
            return
        self._hedge = self._sent(attempt, "hedge")
        self._observer.hedged("sent")

    def _sent(self, attempt: Attempt, why: str) -> SentAttempt[Result]:
        self._schedule.sent(attempt, hedge=why == "hedge")
        sent = self._pool.send(attempt, self._request.send, f"{why} {self._noun}".rstrip())
        self._running[sent.task] = sent
        return sent

    def _ended(self, ended: SentAttempt[Result]) -> None:
        if (error := ended.error()) is not None:
            self._failed(ended, error)
            return
        self._request.answered(ended.attempt.replica, ended.task.result())
        if ended.attempt.waits:
            self._pool.end(ended, ReplicaOutcome.ANSWERED)
        else:
            self._delay.observe(self._schedule.waited(ended.attempt))
            relative = self._schedule.relative(ended.attempt)
            self._pool.end(ended, ReplicaOutcome.ANSWERED, relative)
        if self._best is None or self._missing(ended) < self._missing(self._best):
            self._best = ended

    def _missing(self, ended: SentAttempt[Result]) -> int:
        return self._request.missing(ended.task.result())

    def _may_be_bettered(self, best: SentAttempt[Result]) -> bool:
        """Whether something is left out that another one may have: both ran out of time."""
        return bool(self._running) and self._missing(best) > 0

    def _won(self, winner: SentAttempt[Result]) -> Result:
        for loser in self._running.values():
            lost = self._schedule.lost(loser.attempt, winner.attempt)
            self._pool.end(loser, ReplicaOutcome.ABANDONED if loser.attempt.waits else lost)
        self._running.clear()
        if winner is self._hedge:
            self._observer.hedged("won")
        if winner is self._retry:
            self._observer.retried("won")
        return winner.task.result()

    def _failed(self, ended: SentAttempt[Any], error: BaseException) -> None:
        """Goes on if another attempt runs or may be made; if not, raises the error."""
        if not isinstance(error, WinnowError):
            self._pool.end(ended, ReplicaOutcome.FAILED)
            raise error
        if isinstance(error, GenerationGoneError):
            self._gone = error
        given_up = ended.given_up is not None
        self._pool.end(ended, ReplicaOutcome.ABANDONED if given_up else self._outcome(ended, error))
        if self._running or self._best is not None:
            return
        if self._schedule.retries(error):
            self._retry = self._start("retry", repeat=self._schedule.may_repeat(error))
        if not self._running:
            raise self._gone or error
        self._observer.retried("sent")

    def _outcome(self, ended: SentAttempt[Any], error: WinnowError | None) -> ReplicaOutcome:
        """The outcome of an attempt without a result; None: it was cancelled."""
        late = error is None or isinstance(error, DeadlineExceededError)
        if ended.attempt.waits and late:
            return ReplicaOutcome.ABANDONED
        return self._schedule.outcome(ended.attempt, error)
