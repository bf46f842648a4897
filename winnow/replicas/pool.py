"""A pool of replicas, their backends and their running requests.

The pool knows backends and tasks. It does not know what backends do or why a request is sent.
`policy/` decides which replica gets a request and which replica is ejected.
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
from winnow.replicas.policy.outliers import EjectionState
from winnow.replicas.policy.replicas import Attempt, Replica, Replicas, ReplicaSettings
from winnow.telemetry.tracing.span import SpanKind, span

Backend = TypeVar("Backend")
Result = TypeVar("Result")
Send = Callable[[Backend], Coroutine[Any, Any, Result]]


def given_up_error(address: str, why: str) -> WinnowError:
    """Returns the error of a request to a server that was given up."""
    error = UnavailableError(f"{address} was given up: {why}")
    return error.with_public("the server was given up")


@dataclass(eq=False, slots=True)
class SentAttempt(Generic[Result]):
    """An attempt and the task that sends it and awaits its reply."""

    attempt: Attempt
    task: asyncio.Task[Result]
    given_up: WinnowError | None = None
    """The error of the attempt, if its replica was given up."""

    def error(self) -> BaseException | None:
        """The error of the attempt; None if it has a result. Read it after the task has ended."""
        if not self.task.cancelled():
            return self.task.exception()
        cancelled = UnavailableError(f"{self.attempt.replica.address}: the call was cancelled")
        return self.given_up or cancelled.with_public("the call was cancelled")


class ReplicaPool(Generic[Backend]):
    """Sends requests to interchangeable replicas, and reports their outcomes to the policies."""

    def __init__(
        self,
        backend_at: Callable[[str], Backend],
        settings: ReplicaSettings,
        *,
        clock: Clock,
        rng: random.Random,
        observer: PoolObserver,
        other_requests: Callable[[str], int] = lambda _: 0,
    ) -> None:
        """Starts without replicas; see `update`.

        `backend_at` returns the backend at an address, or raises UnavailableError if there is
        none. `other_requests` returns how many requests run at an address outside this pool.
        """
        self._backend_at, self._observer = backend_at, observer
        self.replicas = Replicas((), settings, clock, rng, other_requests=other_requests)
        """Assigns requests to replicas: call `replicas.take`, then `send`, then `end_attempt`."""
        self._running: dict[SentAttempt[Any], None] = {}
        """The running attempts, in the order in which they were sent."""
        self._ending: set[asyncio.Task[Any]] = set()

    def update(self, addresses: Collection[str], unreachable: Collection[str] = ()) -> None:
        """Replaces the set of replicas that get new requests.

        Running requests to the `unreachable` replicas are given up. Running requests to other
        removed replicas continue.
        """
        removed = [r for address, r in self.replicas.by_address.items() if address not in addresses]
        self.replicas.update(addresses)
        for address in unreachable:
            self._give_up(address, "it no longer replies")
        self._observer.on_removed([replica.address for replica in removed])
        self._observer.on_members(addresses)
        for replica in removed:
            self._report_if_drained(replica)

    def retire(self) -> None:
        """Stops reporting to the observer. Call it when another pool serves new requests."""
        self._observer.on_removed(self.replicas.by_address)
        self._observer = PoolObserver()

    def release_unsent(self, attempt: Attempt) -> None:
        """Releases an attempt that was assigned but not sent."""
        self.replicas.release(attempt, ReplicaOutcome.ABANDONED)
        self._report_if_drained(attempt.replica)

    def send(self, attempt: Attempt, send: Send[Backend, Result], name: str) -> SentAttempt[Result]:
        """Sends a request to the replica of `attempt`; `name` is its name in traces."""
        address = attempt.replica.address

        async def call_backend() -> Result:
            with span(name, {"server.address": address}, SpanKind.CLIENT):
                return await send(self._backend_at(address))

        sent = SentAttempt(attempt, asyncio.create_task(call_backend()))
        self._running[sent] = None
        self._report_outstanding(attempt.replica)
        return sent

    def end_attempt(
        self, ended: SentAttempt[Any], outcome: ReplicaOutcome, latency: float | None = None
    ) -> None:
        """Records the outcome of a sent attempt, exactly once; cancels it if it is running.

        Does not wait for the cancelled task. If the outcome ejects the replica, the replica's
        other running requests are given up, unless no other replica is active. `latency`: see
        `Replicas.release`.
        """
        error = ended.error() if ended.task.done() else None
        self._running.pop(ended, None)
        self._cancel(ended.task)
        self._release(ended.attempt, outcome, latency, error)

    def record_outcome(
        self, address: str, outcome: ReplicaOutcome, latency: float | None = None
    ) -> None:
        """Records the outcome of a request that was sent to a replica outside this pool.

        The outcome counts as that of `end_attempt` does: it may eject the replica.
        """
        self._release(self.replicas.take_at(address), outcome, latency)

    def _release(
        self,
        attempt: Attempt,
        outcome: ReplicaOutcome,
        latency: float | None,
        error: BaseException | None = None,
    ) -> None:
        replica = attempt.replica
        before = replica.record.state
        self.replicas.release(attempt, outcome, latency)
        self._report_outstanding(replica)
        if replica.record.state is not before:
            self._report_state(replica, before, error)
        self._report_if_drained(replica)

    async def close(self) -> None:
        """Gives up every running request, and waits until all requests have ended."""
        self.give_up_all()
        running = [sent.task for sent in self._running]
        await asyncio.gather(*running, *self._ending, return_exceptions=True)

    def give_up_all(self) -> None:
        """Gives up every running request."""
        for address in dict.fromkeys(sent.attempt.replica.address for sent in self._running):
            self._give_up(address, "the pool was closed")

    def _report_state(
        self, replica: Replica, before: EjectionState, error: BaseException | None
    ) -> None:
        address, is_member = replica.address, self._is_member(replica)
        if replica.record.state is EjectionState.EJECTED:
            if is_member:
                self._observer.on_ejected(address, before is EjectionState.ACTIVE, error)
            if any(other.active for other in self.replicas.by_address.values()):
                self._give_up(address, "it was ejected")
        elif replica.active and is_member:
            self._observer.on_readmitted(address)

    def _give_up(self, address: str, why: str) -> None:
        """Fails the running requests of a replica, so that they can be retried in time."""
        for sent in self._running:
            if sent.attempt.replica.address == address and sent.given_up is None:
                sent.given_up = given_up_error(address, why)
                sent.task.cancel()

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._ending.add(task)  # a task without references may be collected before it ends
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not warn about it

    def _report_outstanding(self, replica: Replica) -> None:
        if self._is_member(replica):
            self._observer.on_outstanding(replica.address, replica.outstanding)

    def _report_if_drained(self, replica: Replica) -> None:
        if not replica.outstanding and replica.address not in self.replicas.by_address:
            self._observer.on_drained(replica.address)

    def _is_member(self, replica: Replica) -> bool:
        """Whether a replica is still in the pool. The metrics of a removed replica are gone."""
        return self.replicas.by_address.get(replica.address) is replica
