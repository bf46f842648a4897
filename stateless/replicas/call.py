"""One call to a shard that has replicas: the driver of a `Race`.

Follows the policies: takes replicas, sends, waits, sends again, and ends every attempt it began.
"""

import asyncio
from typing import Any, Generic, TypeVar

from stateless.metrics import ShardCallMetrics
from stateless.policy.hedging import HedgeBudget, HedgeDelay
from stateless.policy.outcomes import Outcome
from stateless.policy.race import Race
from stateless.replicas.pool import ReplicaPool, Send, Try
from winnow.errors import GenerationGoneError, WinnowError

Result = TypeVar("Result")


class HedgedCall(Generic[Result]):
    """A call in progress."""

    def __init__(
        self,
        send: Send[Result],
        race: Race,
        pool: ReplicaPool,
        delay: HedgeDelay,
        budget: HedgeBudget,
        metrics: ShardCallMetrics,
        brief: bool = False,
    ) -> None:
        """`delay` learns how long the call took; `brief`: the call is hardly any work."""
        self._brief = brief
        self._send, self._race, self._pool = send, race, pool
        self._delay, self._budget, self._metrics = delay, budget, metrics
        self._running: dict[asyncio.Task[Result], Try[Result]] = {}
        self._hedge: Try[Result] | None = None
        self._retry: Try[Result] | None = None
        self._gone: GenerationGoneError | None = None

    async def run(self) -> Result | None:
        """The first result; None if there is no replica at all.

        Raises:
            GenerationGoneError: no replica answered, and one no longer holds the generation: the
                caller may retrieve again.
            WinnowError: no replica answered; the error of the last attempt.

        """
        self._budget.earn()
        if self._start() is None:
            return None
        try:
            while True:
                done, _ = await asyncio.wait(
                    self._running, timeout=self._race.next(), return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    self._send_hedge()
                for task in done:
                    ended = self._running.pop(task)
                    if (error := ended.error()) is None:
                        return self._won(ended)
                    self._failed(ended, error)
        finally:
            for left in self._running.values():
                self._pool.end(left, self._race.outcome(left.attempt, None))

    def _start(self) -> Try[Result] | None:
        """Sends to a replica not tried yet, even to an ejected one; None if there is none."""
        attempt = self._pool.take(self._race.tried, self._brief)
        if attempt is None:
            return None
        self._race.sent(attempt)
        return self._sent(self._pool.send(attempt, self._send))

    def _send_hedge(self) -> None:
        overdue = self._race.late()
        # a replica that hangs is late with every request: only the first waits until it is overdue
        suspect = any(each.attempt.replica.record.suspect for each in self._running.values())
        urgent = overdue or suspect
        # a late request must not make others late
        attempt = self._pool.take_spare(self._race.tried, busy=urgent)
        if attempt is None:
            return
        if not self._budget.spend(urgent):
            self._pool.untake(attempt)
            self._metrics.hedged("refused")
            return
        self._race.sent(attempt, hedge=True)
        self._hedge = self._sent(self._pool.send(attempt, self._send))
        self._metrics.hedged("sent")

    def _sent(self, sent: Try[Result]) -> Try[Result]:
        self._running[sent.task] = sent
        return sent

    def _won(self, winner: Try[Result]) -> Result:
        attempt = winner.attempt
        self._delay.observe(self._race.waited(attempt))
        self._pool.end(winner, Outcome.ANSWERED, self._race.relative(attempt))
        for loser in self._running.values():
            self._pool.end(loser, self._race.lost(loser.attempt, attempt))
        self._running.clear()
        if winner is self._hedge:
            self._metrics.hedged("won")
        if winner is self._retry:
            self._metrics.retried("won")
        return winner.task.result()

    def _failed(self, ended: Try[Any], error: BaseException) -> None:
        """Goes on if another attempt runs or may be made; if not, raises the error."""
        if not isinstance(error, WinnowError):
            self._pool.end(ended, Outcome.FAILED)
            raise error
        if isinstance(error, GenerationGoneError):
            self._gone = error
        given_up = ended.given_up is not None
        outcome = Outcome.ABANDONED if given_up else self._race.outcome(ended.attempt, error)
        self._pool.end(ended, outcome)
        if self._running:
            return
        if self._race.retries(error):
            self._retry = self._start()
        if not self._running:
            raise self._gone or error
        self._metrics.retried("sent")
