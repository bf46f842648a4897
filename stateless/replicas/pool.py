"""The replicas of a shard at work: how each is reached, and the requests that each has in hand.

Knows `Searcher`s and tasks; does not know which replica to choose (`policy/replicas.py`), nor why a
request is sent (`call.py`).
"""

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog

from winnow.deadline import Clock
from winnow.errors import UnavailableError, WinnowError
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.outliers import Standing
from winnow.searcher import Read, Retrieved, Searcher
from winnow.stateless.metrics import ReplicaMetrics
from winnow.stateless.policy.replicas import Attempt, Condition, Replica, Replicas, ReplicaSettings
from winnow.telemetry.tracing.span import SpanKind, span

_log = structlog.get_logger("stateless.replicas.pool")
Result = TypeVar("Result")
Send = Callable[[Searcher], Coroutine[Any, Any, Result]]


@dataclass(eq=False, slots=True)
class PoolAttempt(Generic[Result]):
    """An attempt that was sent."""

    attempt: Attempt
    task: asyncio.Task[Result]
    waits: bool = False
    """Whether its replica may have to wait for a write first: its time says nothing about it."""
    given_up: WinnowError | None = None
    """Set when its replica was given up: the reason."""

    def error(self) -> BaseException | None:
        """Its error, once its task is done; None if it has a result."""
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
        self._in_hand: set[PoolAttempt[Any]] = set()
        self._ending: set[asyncio.Task[Any]] = set()
        self._retired = False
        self._lagging: set[str] = set()
        """The replicas that were said to lag."""

    def update(
        self,
        addresses: Collection[str],
        lost: Collection[str] = (),
        sequences: Mapping[str, int] | None = None,
        log_id: str = "",
    ) -> None:
        """From now on new requests go to these replicas; `sequences` are their last writes, in the
        log called `log_id`.

        Requests in hand of the `lost` ones are given up. Requests in hand of any other replica end
        by themselves, even if it gets no new ones.
        """
        gone = self._replicas.known.keys() - set(addresses)
        self._replicas.update(addresses)
        for address in lost:
            self._give_up(address, "it does not reply any more")
        self._metrics.forget(self._shard, gone)
        if not self._retired:
            self._metrics.known(self._shard, addresses)
        self._replicas.told(sequences or {}, log_id)
        self._tell_lag()

    def retire(self) -> None:
        """From now on it keeps no metrics: another pool serves new questions."""
        self._retired = True
        self._metrics.forget(self._shard, self._replicas.known)

    def conditions(self) -> dict[str, Condition]:
        """How each replica does, by address."""
        return self._replicas.conditions()

    def take(self, excluding: Collection[str], brief: bool, after: int = 0) -> Attempt | None:
        """Chooses a replica for a request; see `Replicas.take`."""
        if self._replicas.lagging() != self._lagging:
            self._tell_lag()
        return self._replicas.take(excluding, brief, after)

    def take_spare(self, excluding: Collection[str], busy: bool, after: int = 0) -> Attempt | None:
        """Chooses a replica for a hedge; see `Replicas.take_spare`."""
        return self._replicas.take_spare(excluding, busy, after)

    def untake(self, attempt: Attempt) -> None:
        """Releases an attempt that was not sent."""
        self._replicas.release(attempt, ReplicaOutcome.ABANDONED)

    def send(
        self, attempt: Attempt, send: Send[Result], after: int = 0, why: str = "ask"
    ) -> PoolAttempt[Result]:
        """Sends a request, which needs the write `after`, to the replica that was taken; `why` is
        what traces call it.
        """
        progress, address = attempt.replica.progress, attempt.replica.address

        async def reach_and_send() -> Result:
            with span(why, {"server.address": address}, SpanKind.CLIENT):
                result = await send(self._reach(address))
            if isinstance(result, Read | Retrieved):
                progress.reached(result.sequence, result.log_id)
            return result

        waits = after > progress.sequence
        sent = PoolAttempt(attempt, asyncio.create_task(reach_and_send()), waits)
        self._in_hand.add(sent)
        self._count(attempt)
        return sent

    def end(
        self, ended: PoolAttempt[Any], outcome: ReplicaOutcome, seconds: float | None = None
    ) -> None:
        """Ends a request, once; if it still runs, cancels it without waiting for it.

        If its replica is ejected for that, the other requests it has in hand are given up.
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
        """Fails the requests in hand of a replica, so that they are retried while there is time."""
        for each in self._in_hand:
            if each.attempt.replica.address == address and each.given_up is None:
                each.given_up = UnavailableError(f"{address} was given up: {why}")
                each.task.cancel()

    def _tell_lag(self) -> None:
        """Says which replicas lag, by how many writes, and which do not any more."""
        behind, lagging = self._replicas.behind(), self._replicas.lagging()
        if self._retired:
            return
        for address, writes in behind.items():
            self._metrics.lag.labels(self._shard, address).set(writes)
        for address in sorted(lagging - self._lagging):
            _log.warning("replica lags", shard=self._shard, address=address, writes=behind[address])
        for address in sorted(self._lagging & behind.keys() - lagging):
            _log.info("replica lags no more", shard=self._shard, address=address)
        self._lagging = lagging

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
        """Whether it has metrics: those of replicas that left were dropped."""
        return not self._retired and self._replicas.known.get(replica.address) is replica
