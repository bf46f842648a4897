"""The calls for the heads of one text: to the server of each head, and to a second one in need.

Knows the pool of head servers and where each head belongs; does not know how a call is sent.
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
"""A head server answers by its caller's deadline even if its heads are late, so silence means more
than at a content node. All may be ejected at once: a head is then asked for at its first choice."""
_FIRST_SHARE = 0.5
"""Share of the time left after which a second server is asked for the heads of a silent one."""


class HeadServer(Protocol):
    """Calls one head server: `winnow.heads.remote.RemoteHeads`."""

    async def call(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies heads; raises WinnowError if the call fails as a whole."""

    async def close(self) -> None:
        """Closes the connection."""


def worth_another_server(failure: WinnowError | None) -> bool:
    """Whether another server may apply a head that failed.

    It may have the head in memory, or room for it, or reach its store. A head that was late is not
    worth another server, which would first have to load it, too.
    """
    return isinstance(failure, UnavailableError | OverloadedError)


def call_worth_another_server(error: WinnowError) -> bool:
    """Whether another server may answer a call that failed as a whole.

    It may be this server alone that has another encoder, or is broken.
    """
    return not isinstance(error, InvalidRequestError)


@dataclass(frozen=True, slots=True, eq=False)
class HeadCall:
    """A call to one server for some heads."""

    heads: tuple[str, ...]
    sent: SentAttempt[list[Applied]]
    began: float

    def result(self) -> tuple[list[Applied], set[str]]:
        """Once its task is done: what became of each head, and the heads that are worth another
        server. Raises what is no WinnowError.
        """
        error = self.sent.error()
        if error is None:
            applied = self.sent.task.result()
            return applied, {each.head for each in applied if worth_another_server(each.failure)}
        if not isinstance(error, WinnowError):
            raise error
        failed = [Applied(head=head, version=0, failure=error) for head in self.heads]
        return failed, set(self.heads) if call_worth_another_server(error) else set()

    def outcome(self, now: float) -> ReplicaOutcome:
        """How it ended for its server, if it ends now."""
        if self.sent.given_up is not None:
            return ReplicaOutcome.ABANDONED
        error = self.sent.error() if self.sent.task.done() else None
        if self.sent.task.done() and error is None:
            return ReplicaOutcome.ANSWERED
        known = error if error is None or isinstance(error, WinnowError) else WinnowError()
        return outcome_of(known, now - self.began, HEAD_OUTLIERS.silence)


class HeadCalls:
    """The calls for the heads of one text. Its creator ends it."""

    def __init__(
        self,
        pool: ReplicaPool[HeadServer],
        placement: Callable[[], Placement],
        send: Callable[[HeadServer, Sequence[str]], Coroutine[Any, Any, list[Applied]]],
        *,
        deadline: Deadline,
        clock: Clock,
    ) -> None:
        """`placement` returns that of the pool's servers, which may change meanwhile.

        `send` asks a server for heads; `clock` is the pool's.
        """
        self._pool, self._placement, self._send = pool, placement, send
        self._deadline, self._clock = deadline, clock
        self._in_hand: set[HeadCall] = set()
        self._found: dict[str, Applied] = {}
        self._settled: set[str] = set()
        """Heads that were applied, or that no server can apply."""

    async def run(self, heads: Sequence[str]) -> list[Applied]:
        """Asks all servers at once; returns what became of each head, in the order of `heads`."""
        waiting = [asyncio.create_task(self._settle(call)) for call in self._begin(heads, {})]
        try:
            await asyncio.gather(*waiting)
        finally:
            for each in waiting:
                each.cancel()
        unknown = UnavailableError("no head server is known")
        return [
            self._found.get(head) or Applied(head=head, version=0, failure=unknown)
            for head in heads
        ]

    def end(self) -> None:
        """Cancels every call that is still in hand."""
        for call in list(self._in_hand):
            self._end(call)

    def _begin(self, heads: Sequence[str], tried: Mapping[str, str]) -> list[HeadCall]:
        """Sends a call to each server that is to be asked, so that no head is in two calls.

        A head is asked for at its first choice that is not ejected, or at its very first one if all
        are. `tried` names a server where a head was asked for already. A second attempt probes no
        server: it must not wait for another one that may hang.
        """
        chosen: dict[str, list[str]] = {}
        placement = self._placement()
        for head in heads:
            order = [each for each in placement.order(head) if each != tried.get(head)]
            if order:
                server = self._pool.replicas.first_available(order, probes=not tried)
                chosen.setdefault(server, []).append(head)
        return [self._call(server, tuple(own)) for server, own in chosen.items()]

    def _call(self, address: str, heads: tuple[str, ...]) -> HeadCall:
        attempt = self._pool.replicas.take_at(address)
        sent = self._pool.send(attempt, lambda server: self._send(server, heads), "ask heads")
        call = HeadCall(heads, sent, self._clock())
        self._in_hand.add(call)
        return call

    def _end(self, call: HeadCall) -> None:
        self._in_hand.discard(call)
        self._pool.end(call.sent, call.outcome(self._clock()))

    async def _settle(self, first: HeadCall) -> None:
        """Waits for a server; asks the next one for what it cannot do, or has not done yet.

        The first server may still answer; the first answer counts.
        """
        running = {first.sent.task: first}
        others = len(self._pool.replicas.by_address) > 1
        patience = max(self._deadline.left(), 0.0) * _FIRST_SHARE
        await self._next(running, patience if others else None)
        again = self._open(first.heads)
        if again and others and not self._deadline.expired():
            tried = dict.fromkeys(again, first.sent.attempt.replica.address)
            running |= {call.sent.task: call for call in self._begin(again, tried)}
        while running and self._open(first.heads):
            await self._next(running, None)

    async def _next(
        self, running: dict[asyncio.Task[list[Applied]], HeadCall], seconds: float | None
    ) -> None:
        """Waits for a call that is running, and takes what it brings."""
        done, _ = await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for call in [running.pop(task) for task in done]:
            self._end(call)
            applied, worth_more = call.result()
            for each in applied:
                if each.head not in self._settled:
                    self._found[each.head] = each
            self._settled |= {each.head for each in applied} - worth_more

    def _open(self, heads: Sequence[str]) -> list[str]:
        return [head for head in heads if head not in self._settled]
