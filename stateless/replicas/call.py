"""One call to a shard that has replicas: the driver of a `HedgeSchedule`.

Follows the policies: takes replicas, sends, waits, sends again, and ends every attempt it began.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from winnow.errors import DeadlineExceededError, GenerationGoneError, WinnowError
from winnow.replicas.policy.hedging import HedgeBudget, HedgeDelay
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.stateless.metrics import ShardCallMetrics
from winnow.stateless.policy.hedge_schedule import HedgeSchedule
from winnow.stateless.replicas.pool import PoolAttempt, ReplicaPool, Send

Result = TypeVar("Result")


class HedgedCall(Generic[Result]):
    """A call in progress."""

    def __init__(
        self,
        send: Send[Result],
        race: HedgeSchedule,
        pool: ReplicaPool,
        delay: HedgeDelay,
        budget: HedgeBudget,
        metrics: ShardCallMetrics,
        lacks: Callable[[Result], int] = lambda _: 0,
        brief: bool = False,
        after: int = 0,
    ) -> None:
        """`delay` learns how long the call took; `lacks`: how much of what was asked for a result
        leaves out; `brief`: the call is hardly any work; `after`: the write that it needs.
        """
        self._lacks, self._brief, self._after = lacks, brief, after
        self._send, self._race, self._pool = send, race, pool
        self._delay, self._budget, self._metrics = delay, budget, metrics
        self._running: dict[asyncio.Task[Result], PoolAttempt[Result]] = {}
        self._hedge: PoolAttempt[Result] | None = None
        self._retry: PoolAttempt[Result] | None = None
        self._best: PoolAttempt[Result] | None = None
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
                wait = self._race.grace if self._best else self._race.next()
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

    def _start(self, why: str = "ask") -> PoolAttempt[Result] | None:
        """Sends to a replica not tried yet, even to an ejected one; None if there is none."""
        attempt = self._pool.take(self._race.tried, self._brief, self._after)
        if attempt is None:
            return None
        self._race.sent(attempt)
        return self._sent(self._pool.send(attempt, self._send, self._after, why))

    def _send_hedge(self) -> None:
        overdue = self._race.late()
        # a replica that hangs is late with every request: only the first waits until it is overdue
        suspect = any(each.attempt.replica.record.suspect for each in self._running.values())
        urgent = overdue or suspect
        # whoever waits for a write is late for that, and callers name writes as they like
        if not urgent and any(each.waits for each in self._running.values()):
            return
        # a late request must not make others late
        attempt = self._pool.take_spare(self._race.tried, urgent, self._after)
        if attempt is None:
            return
        if not self._budget.spend(urgent):
            self._pool.untake(attempt)
            self._metrics.hedged("refused")
            return
        self._race.sent(attempt, hedge=True)
        self._hedge = self._sent(self._pool.send(attempt, self._send, self._after, "hedge"))
        self._metrics.hedged("sent")

    def _sent(self, sent: PoolAttempt[Result]) -> PoolAttempt[Result]:
        self._running[sent.task] = sent
        return sent

    def _ended(self, ended: PoolAttempt[Result]) -> None:
        if (error := ended.error()) is not None:
            self._failed(ended, error)
            return
        if ended.waits:
            self._pool.end(ended, ReplicaOutcome.ANSWERED)
        else:
            self._delay.observe(self._race.waited(ended.attempt))
            self._pool.end(ended, ReplicaOutcome.ANSWERED, self._race.relative(ended.attempt))
        best = self._best
        if best is None or self._lacks(ended.task.result()) < self._lacks(best.task.result()):
            self._best = ended

    def _may_be_bettered(self, best: PoolAttempt[Result]) -> bool:
        """Whether something is left out that another one may have: both ran out of time."""
        return bool(self._running) and self._lacks(best.task.result()) > 0

    def _won(self, winner: PoolAttempt[Result]) -> Result:
        for loser in self._running.values():
            lost = self._race.lost(loser.attempt, winner.attempt)
            self._pool.end(loser, ReplicaOutcome.ABANDONED if loser.waits else lost)
        self._running.clear()
        if winner is self._hedge:
            self._metrics.hedged("won")
        if winner is self._retry:
            self._metrics.retried("won")
        return winner.task.result()

    def _failed(self, ended: PoolAttempt[Any], error: BaseException) -> None:
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
        if self._race.retries(error):
            self._retry = self._start("retry")
        if not self._running:
            raise self._gone or error
        self._metrics.retried("sent")

    def _outcome(self, ended: PoolAttempt[Any], error: WinnowError | None) -> ReplicaOutcome:
        """The outcome of an attempt without a result; None: it was cancelled."""
        late = error is None or isinstance(error, DeadlineExceededError)
        if ended.waits and late:
            return ReplicaOutcome.ABANDONED
        return self._race.outcome(ended.attempt, error)
