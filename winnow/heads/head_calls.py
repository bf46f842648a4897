"""Calls the head servers for one text, and retries heads on a second server if the first fails.

Chooses a server for each head; does not know how a call is sent.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from winnow.deadline import Clock, Deadline
from winnow.domain.prediction import Applied
from winnow.errors import InvalidRequestError, OverloadedError, UnavailableError, WinnowError
from winnow.heads.heads import States
from winnow.replicas.policy.outcomes import ReplicaOutcome, outcome_of
from winnow.replicas.policy.outliers import OutlierSettings
from winnow.replicas.policy.placement import Placement
from winnow.replicas.pool import ReplicaPool, SentAttempt

HEAD_OUTLIERS = OutlierSettings(silence=0.1, max_ejected_share=None, mismatch_ejects=True)
"""Settings for ejecting head servers.

A head server replies by the deadline even if its heads are late, so silence counts more than that
of a content node. All servers may be ejected; heads then go to their first choice.
"""
_FIRST_CALL_SHARE = 0.5
"""Share of the remaining time after which a silent server's heads are sent to a second server."""


class HeadServer(Protocol):
    """A client of one head server, such as `winnow.heads.remote.RemoteHeads`."""

    async def call(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies heads to a text; raises WinnowError if the whole call fails."""

    async def close(self) -> None:
        """Closes the connection."""


def may_succeed_elsewhere(failure: WinnowError | None) -> bool:
    """Returns whether to retry a failed head on another server.

    Another server may have the head in memory, have room for it, or reach the store. A late head is
    not retried, because another server would have to load the head first.
    """
    return isinstance(failure, UnavailableError | OverloadedError)


def call_may_succeed_elsewhere(error: WinnowError) -> bool:
    """Returns whether to retry a failed call on another server.

    Another server may have the right encoder, or run without faults.
    """
    return not isinstance(error, InvalidRequestError)


@dataclass(frozen=True, slots=True, eq=False)
class HeadCall:
    """A call to one server for some heads."""

    heads: tuple[str, ...]
    sent: SentAttempt[list[Applied]]
    started_at: float
    """Time of the call, in seconds of the clock."""

    def result(self) -> tuple[list[Applied], set[str]]:
        """Returns the result of each head, and the ids of heads to retry on another server.

        Call it only when the task is done. Raises the task's error unless it is a WinnowError.
        """
        error = self.sent.error()
        if error is None:
            applied = self.sent.task.result()
            return applied, {each.head for each in applied if may_succeed_elsewhere(each.failure)}
        if not isinstance(error, WinnowError):
            raise error
        failed = [Applied(head=head, version=0, failure=error) for head in self.heads]
        return failed, set(self.heads) if call_may_succeed_elsewhere(error) else set()

    def outcome(self, now: float) -> ReplicaOutcome:
        """Returns the outcome of a call that ends at `now`, for the statistics of its server."""
        if self.sent.given_up is not None:
            return ReplicaOutcome.ABANDONED
        error = self.sent.error() if self.sent.task.done() else None
        if self.sent.task.done() and error is None:
            return ReplicaOutcome.ANSWERED
        reported = error if error is None or isinstance(error, WinnowError) else WinnowError()
        return outcome_of(reported, now - self.started_at, HEAD_OUTLIERS.silence)


class HeadCalls:
    """The calls for the heads of one text. The creator must call `cancel`."""

    def __init__(
        self,
        pool: ReplicaPool[HeadServer],
        placement: Callable[[], Placement],
        send: Callable[[HeadServer, Sequence[str]], Coroutine[Any, Any, list[Applied]]],
        *,
        deadline: Deadline,
        clock: Clock,
    ) -> None:
        """Sends nothing yet.

        Args:
            pool: the head servers.
            placement: returns the current placement of heads on the servers.
            send: calls a server for some heads.
            deadline: deadline of the caller.
            clock: the clock of the pool.

        """
        self._pool, self._placement, self._send = pool, placement, send
        self._deadline, self._clock = deadline, clock
        self._in_flight: set[HeadCall] = set()
        self._results: dict[str, Applied] = {}
        self._settled: set[str] = set()
        """Heads that were applied, or that no server can apply."""

    async def run(self, heads: Sequence[str]) -> list[Applied]:
        """Calls all servers concurrently; returns the result of each head, in the given order."""
        tasks = [asyncio.create_task(self._settle(call)) for call in self._send_calls(heads, {})]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        no_server = UnavailableError("no head server is known")
        return [
            self._results.get(head) or Applied(head=head, version=0, failure=no_server)
            for head in heads
        ]

    def cancel(self) -> None:
        """Cancels all calls in flight."""
        for call in list(self._in_flight):
            self._end_call(call)

    def _send_calls(self, heads: Sequence[str], tried: Mapping[str, str]) -> list[HeadCall]:
        """Chooses a server for each head, and sends one call to each chosen server.

        A head goes to its first server that is not ejected, or to its first choice if all are.
        `tried` maps each head to the server that was already called for it. A second attempt never
        probes an ejected server, which may hang.
        """
        heads_by_server: dict[str, list[str]] = {}
        placement = self._placement()
        for head in heads:
            order = [each for each in placement.order(head) if each != tried.get(head)]
            if order:
                server = self._pool.replicas.first_available(order, probes=not tried)
                heads_by_server.setdefault(server, []).append(head)
        return [self._send_call(server, tuple(ids)) for server, ids in heads_by_server.items()]

    def _send_call(self, address: str, heads: tuple[str, ...]) -> HeadCall:
        attempt = self._pool.replicas.take_at(address)
        sent = self._pool.send(attempt, lambda server: self._send(server, heads), "ask heads")
        call = HeadCall(heads, sent, self._clock())
        self._in_flight.add(call)
        return call

    def _end_call(self, call: HeadCall) -> None:
        self._in_flight.discard(call)
        self._pool.end_attempt(call.sent, call.outcome(self._clock()))

    async def _settle(self, first: HeadCall) -> None:
        """Waits for a call, and retries its failed or late heads on their next server.

        The first server may still reply; the first reply counts.
        """
        running = {first.sent.task: first}
        has_others = len(self._pool.replicas.by_address) > 1
        seconds = max(self._deadline.left(), 0.0) * _FIRST_CALL_SHARE
        await self._await_call(running, seconds if has_others else None)
        unsettled = self._unsettled(first.heads)
        if unsettled and has_others and not self._deadline.expired():
            tried = dict.fromkeys(unsettled, first.sent.attempt.replica.address)
            running |= {call.sent.task: call for call in self._send_calls(unsettled, tried)}
        while running and self._unsettled(first.heads):
            await self._await_call(running, None)

    async def _await_call(
        self, running: dict[asyncio.Task[list[Applied]], HeadCall], timeout: float | None
    ) -> None:
        """Waits until a running call ends, and records its results."""
        done, _ = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for call in [running.pop(task) for task in done]:
            self._end_call(call)
            applied, retryable = call.result()
            for each in applied:
                if each.head not in self._settled:
                    self._results[each.head] = each
            self._settled |= {each.head for each in applied} - retryable

    def _unsettled(self, heads: Sequence[str]) -> list[str]:
        return [head for head in heads if head not in self._settled]
