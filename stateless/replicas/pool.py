"""The replicas of a shard at work: how each is reached and what each has in hand.

Knows `Searcher`s and tasks; whom to ask is the policy's business, and why is the call's.
"""

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stateless.metrics import ReplicaMetrics
from stateless.policy.outcomes import Outcome
from stateless.policy.outliers import Standing
from stateless.policy.replicas import Attempt, Replica, Replicas, ReplicaSettings
from winnow.deadline import Clock
from winnow.errors import UnavailableError, WinnowError
from winnow.searcher import Searcher

Result = TypeVar("Result")
Send = Callable[[Searcher], Coroutine[Any, Any, Result]]


@dataclass(eq=False, slots=True)
class Try(Generic[Result]):
    """An attempt that was sent."""

    attempt: Attempt
    task: asyncio.Task[Result]
    given_up: WinnowError | None = None
    """Why its replica was given up while it had this in hand."""

    def error(self) -> BaseException | None:
        """What it failed with, once its task is done; None if it did not."""
        if not self.task.cancelled():
            return self.task.exception()
        address = self.attempt.replica.address
        return self.given_up or UnavailableError(f"{address}: the call was cancelled")


class ReplicaPool:
    """The replicas of one shard."""

    def __init__(
        self,
        shard: int,
        reach: Callable[[str], Searcher],
        settings: ReplicaSettings,
        clock: Clock,
        chance: random.Random,
        metrics: ReplicaMetrics,
    ) -> None:
        """`reach` gives the searcher at an address; raises UnavailableError if it is gone."""
        self._shard, self._reach, self._metrics = str(shard), reach, metrics
        self._replicas = Replicas((), settings, clock, chance)
        self._in_hand: set[Try[Any]] = set()
        self._ending: set[asyncio.Task[Any]] = set()
        self._retired = False

    def update(self, addresses: Collection[str], lost: Collection[str] = ()) -> None:
        """From now on these are the replicas, and those are `lost`.

        What lost ones have in hand is given up. What any other one has in hand ends by itself,
        also if it gets no new requests.
        """
        gone = self._replicas.known.keys() - set(addresses)
        self._replicas.update(addresses)
        for address in lost:
            self._give_up(address, "it does not reply any more")
        self._metrics.forget(self._shard, gone)

    def retire(self) -> None:
        """From now on nothing is measured: another pool is asked, this one ends its requests."""
        self._retired = True
        self._metrics.forget(self._shard, self._replicas.known)

    def take(self, excluding: Collection[str], brief: bool) -> Attempt | None:
        """Gives a request to a replica, or to none; see `Replicas.take`."""
        return self._replicas.take(excluding, brief)

    def take_spare(self, excluding: Collection[str], busy: bool) -> Attempt | None:
        """Gives a hedge to a replica, or to none; see `Replicas.take_spare`."""
        return self._replicas.take_spare(excluding, busy)

    def untake(self, attempt: Attempt) -> None:
        """Takes an attempt back that was not sent."""
        self._replicas.release(attempt, Outcome.ABANDONED)

    def send(self, attempt: Attempt, send: Send[Result]) -> Try[Result]:
        """Sends a request to the replica that was taken."""

        async def reach_and_send() -> Result:
            return await send(self._reach(attempt.replica.address))

        sent = Try(attempt, asyncio.create_task(reach_and_send()))
        self._in_hand.add(sent)
        self._count(attempt)
        return sent

    def end(self, ended: Try[Any], outcome: Outcome, seconds: float | None = None) -> None:
        """Ends a request, once; cancels it if it runs, and does not wait until that has happened.

        If its replica is ejected for it, whatever else that has in hand is given up.
        """
        self._in_hand.discard(ended)
        self._dismiss(ended.task)
        record = ended.attempt.replica.record
        was_out = record.standing is Standing.EJECTED
        self._replicas.release(ended.attempt, outcome, seconds)
        self._count(ended.attempt)
        if record.standing is Standing.EJECTED and not was_out:
            replica = ended.attempt.replica
            if self._measured(replica):
                self._metrics.ejections.labels(self._shard, replica.address).inc()
            self._give_up(replica.address, "it does not answer as it should")

    def _give_up(self, address: str, why: str) -> None:
        """Fails what a replica has in hand, so that it is sent elsewhere while there is time."""
        for each in self._in_hand:
            if each.attempt.replica.address == address and each.given_up is None:
                each.given_up = UnavailableError(f"{address} was given up: {why}")
                each.task.cancel()

    def _dismiss(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._ending.add(task)  # a task that nothing refers to may vanish before it ends
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()  # was looked at, or came too late to matter

    def _count(self, attempt: Attempt) -> None:
        replica = attempt.replica
        if self._measured(replica):
            self._metrics.outstanding.labels(self._shard, replica.address).set(replica.outstanding)

    def _measured(self, replica: Replica) -> bool:
        """Whether it has series: those of a replica that is gone were dropped."""
        return not self._retired and self._replicas.known.get(replica.address) is replica
