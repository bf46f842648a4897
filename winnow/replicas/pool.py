"""A pool of replicas at work: how each is reached, and the requests that each has in hand.

Knows backends and tasks; does not know what backends do, nor why a request is sent. `policy/` says
which replica gets a request, and which one is ejected.
"""

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from winnow.deadline import Clock
from winnow.errors import UnavailableError, WinnowError
from winnow.replicas.observer import PoolObserver
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.outliers import Standing
from winnow.replicas.policy.replicas import Attempt, Replica, Replicas, ReplicaSettings
from winnow.telemetry.tracing.span import SpanKind, span

Backend = TypeVar("Backend")
Result = TypeVar("Result")
Send = Callable[[Backend], Coroutine[Any, Any, Result]]
_GIVEN_UP = "the server was given up"


@dataclass(eq=False, slots=True)
class SentAttempt(Generic[Result]):
    """An attempt that was sent."""

    attempt: Attempt
    task: asyncio.Task[Result]
    given_up: WinnowError | None = None
    """Set when its replica was given up: the reason."""

    def error(self) -> BaseException | None:
        """Its error, once its task is done; None if it has a result."""
        if not self.task.cancelled():
            return self.task.exception()
        cancelled = UnavailableError(f"{self.attempt.replica.address}: the call was cancelled")
        return self.given_up or cancelled.with_public("the call was cancelled")


class ReplicaPool(Generic[Backend]):
    """Replicas that can stand in for each other."""

    def __init__(
        self,
        reach: Callable[[str], Backend],
        settings: ReplicaSettings,
        *,
        clock: Clock,
        chance: random.Random,
        observer: PoolObserver,
    ) -> None:
        """`reach` returns the backend at an address; raises UnavailableError if it is gone."""
        self._reach, self._observer = reach, observer
        self.replicas = Replicas((), settings, clock, chance)
        """Which replica a request goes to: take one here, then `send`, then `end`."""
        self._in_hand: set[SentAttempt[Any]] = set()
        self._ending: set[asyncio.Task[Any]] = set()

    def update(self, addresses: Collection[str], lost: Collection[str] = ()) -> None:
        """From now on new requests go to these replicas.

        Requests in hand of the `lost` ones are given up. Requests in hand of any other replica end
        by themselves, even if it gets no new ones.
        """
        gone = [r for address, r in self.replicas.known.items() if address not in addresses]
        self.replicas.update(addresses)
        for address in lost:
            self._give_up(address, "it does not reply any more")
        self._observer.gone([replica.address for replica in gone])
        self._observer.known(addresses)
        for replica in gone:
            self._tell_left(replica)

    def retire(self) -> None:
        """From now on observes nothing: another pool serves new requests."""
        self._observer.gone(self.replicas.known)
        self._observer = PoolObserver()

    def untake(self, attempt: Attempt) -> None:
        """Releases an attempt that was not sent."""
        self.replicas.release(attempt, ReplicaOutcome.ABANDONED)
        self._tell_left(attempt.replica)

    def send(self, attempt: Attempt, send: Send[Backend, Result], name: str) -> SentAttempt[Result]:
        """Sends a request to the replica that was taken; traces call it `name`."""
        address = attempt.replica.address

        async def reach_and_send() -> Result:
            with span(name, {"server.address": address}, SpanKind.CLIENT):
                return await send(self._reach(address))

        sent = SentAttempt(attempt, asyncio.create_task(reach_and_send()))
        self._in_hand.add(sent)
        self._count(attempt.replica)
        return sent

    def end(
        self, ended: SentAttempt[Any], outcome: ReplicaOutcome, seconds: float | None = None
    ) -> None:
        """Ends a request, once; if it still runs, cancels it without waiting for it.

        If its replica is ejected for that, the other requests it has in hand are given up, unless
        no replica is left that could answer instead.
        """
        error = ended.error() if ended.task.done() else None
        self._in_hand.discard(ended)
        self._dismiss(ended.task)
        replica = ended.attempt.replica
        before = replica.record.standing
        self.replicas.release(ended.attempt, outcome, seconds)
        self._count(replica)
        if replica.record.standing is not before:
            self._tell_standing(replica, before, error)
        self._tell_left(replica)

    async def close(self) -> None:
        """Gives up every request in hand, and waits until all have ended."""
        self.give_up_all()
        running = [each.task for each in self._in_hand]
        await asyncio.gather(*running, *self._ending, return_exceptions=True)

    def give_up_all(self) -> None:
        """Gives up every request in hand."""
        for address in {each.attempt.replica.address for each in self._in_hand}:
            self._give_up(address, "the pool was closed")

    def _tell_standing(
        self, replica: Replica, before: Standing, error: BaseException | None
    ) -> None:
        address, known = replica.address, self._is_known(replica)
        if replica.record.standing is Standing.EJECTED:
            if known:
                self._observer.ejected(address, before is Standing.ACTIVE, error)
            if any(other.active for other in self.replicas.known.values()):
                self._give_up(address, "it does not answer as it should")
        elif replica.active and known:
            self._observer.readmitted(address)

    def _give_up(self, address: str, why: str) -> None:
        """Fails the requests in hand of a replica, so that they are retried while there is time."""
        for each in self._in_hand:
            if each.attempt.replica.address == address and each.given_up is None:
                error = UnavailableError(f"{address} was given up: {why}")
                each.given_up = error.with_public(_GIVEN_UP)
                each.task.cancel()

    def _dismiss(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._ending.add(task)  # a task that nothing refers to may vanish before it ends
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()  # was looked at, or came too late to matter

    def _count(self, replica: Replica) -> None:
        if self._is_known(replica):
            self._observer.outstanding(replica.address, replica.outstanding)

    def _tell_left(self, replica: Replica) -> None:
        if not replica.outstanding and replica.address not in self.replicas.known:
            self._observer.left(replica.address)

    def _is_known(self, replica: Replica) -> bool:
        """Whether it is observed: the series of replicas that left were dropped."""
        return self.replicas.known.get(replica.address) is replica
