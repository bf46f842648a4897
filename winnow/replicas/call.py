"""Sends one request to a pool of replicas, with a hedge if it is late and a retry if it fails.

The policies decide when to send and to which replica. This module sends the attempts, waits for
their results, and ends them.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, GenerationGoneError, WinnowError
from winnow.replicas.observer import PoolObserver
from winnow.replicas.policy.hedge_schedule import HedgeSchedule
from winnow.replicas.policy.hedging import HedgeBudget, HedgeDelay, LatencyEstimate
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.replicas import ANY_REPLICA, Attempt, Preference, Replica
from winnow.replicas.pool import ReplicaPool, Send, SentAttempt

Backend = TypeVar("Backend")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAttempt(Generic[Result]):
    """The first attempt of a request, sent outside the pool before the request began."""

    address: str
    sent_at: float
    """When the attempt was sent, on the clock of the request's deadline."""
    estimate: LatencyEstimate | None
    """The expected latency of this attempt; None if it is not known."""
    result: Callable[[], Coroutine[Any, Any, Result]]
    """Awaits the result of the attempt, or raises its error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRequest(Generic[Backend, Result]):
    """A request that any replica of a pool can answer."""

    kind: str
    """The kind of request. Latencies are compared only between requests of one kind and about the
    same amount of work.
    """
    work: int
    """The amount of work, in a unit that the caller chooses; 0 for very little."""
    send: Send[Backend, Result]
    deadline: Deadline
    is_brief: bool = False
    """Whether the request may probe a replica as soon as its ejection ends. Set it if a late
    reply does little harm.
    """
    is_comparable: bool = True
    """Whether requests of this kind with this work take about the same time. Otherwise a request is
    only hedged if its replica seems to hang, and its latency does not count against its replica.
    """
    preference: Preference = ANY_REPLICA
    count_missing: Callable[[Result], int] = lambda _: 0
    """Returns how much of the requested work a result lacks; 0 if the result is complete."""
    on_result: Callable[[Replica, Result], None] = lambda *_: None
    """Called with every result and the replica that returned it."""
    earlier: EarlierAttempt[Result] | None = None
    """The first attempt, if it was sent before this request was made."""


class HedgedCall(Generic[Backend, Result]):
    """One call to a pool, with its hedge and its retry."""

    def __init__(
        self,
        request: PoolRequest[Backend, Result],
        pool: ReplicaPool[Backend],
        *,
        schedule: HedgeSchedule,
        delay: HedgeDelay,
        budget: HedgeBudget,
        observer: PoolObserver,
        trace_noun: str = "",
    ) -> None:
        """Sends nothing yet; see `run`.

        `delay` records the latency of every result. `trace_noun` names the callee in traces.
        """
        self._request, self._schedule, self._pool = request, schedule, pool
        self._delay, self._budget, self._observer = delay, budget, observer
        self._trace_noun = trace_noun
        self._running: dict[asyncio.Task[Result], SentAttempt[Result]] = {}
        self._earlier: SentAttempt[Result] | None = None
        self._hedge: SentAttempt[Result] | None = None
        self._retry: SentAttempt[Result] | None = None
        self._best_result: SentAttempt[Result] | None = None
        """The ended attempt with the most complete result."""
        self._generation_gone: GenerationGoneError | None = None

    async def run(self) -> Result | None:
        """Returns the first complete result, or else the most complete one.

        Returns None if the pool has no replica.

        Raises:
            GenerationGoneError: no replica answered, and at least one no longer holds the
                generation. The caller may retrieve the hits again.
            WinnowError: no replica answered. This is the error of the last attempt.

        """
        self._budget.earn()
        if not (self._join_earlier() or self._send_to_untried()):
            return None
        try:
            while self._best_result is None or self._can_improve(self._best_result):
                wait = (
                    self._schedule.wait_for_more
                    if self._best_result
                    else self._schedule.hedge_wait()
                )
                done, _ = await asyncio.wait(
                    self._running, timeout=wait, return_when=asyncio.FIRST_COMPLETED
                )
                if not done and self._best_result is not None:
                    break
                if not done:
                    self._send_hedge()
                # `done` is a set: its tasks are handled in the order in which they were sent
                for task in [task for task in self._running if task in done]:
                    self._handle_end(self._running.pop(task))
            return self._finish(self._best_result)
        finally:
            for running in self._running.values():
                self._pool.end_attempt(running, self._outcome(running, None))

    def _join_earlier(self) -> SentAttempt[Result] | None:
        """Takes over the earlier attempt.

        Returns None if there is no earlier attempt, or if its replica was removed or ejected.
        """
        earlier = self._request.earlier
        attempt = self._pool.replicas.take_earlier(earlier.address) if earlier else None
        if earlier is None or attempt is None:
            return None
        self._schedule.record_sent(attempt, at=earlier.sent_at)
        self._earlier = self._pool.send(
            attempt, lambda _: earlier.result(), f"await {self._trace_noun}".rstrip()
        )
        self._running[self._earlier.task] = self._earlier
        return self._earlier

    def _send_to_untried(
        self, purpose: str = "ask", repeat: bool = False
    ) -> SentAttempt[Result] | None:
        """Sends the request to a replica that was not tried yet, if necessary an ejected one.

        Returns None if every replica was tried. `repeat` allows a replica that was tried, if no
        other replica is preferred.
        """
        request = self._request
        attempt = self._pool.replicas.take(
            self._schedule.tried, request.is_brief, request.preference, repeat
        )
        return self._send(attempt, purpose) if attempt is not None else None

    def _send_hedge(self) -> None:
        overdue = self._schedule.pop_hedge()
        running = [sent.attempt for sent in self._running.values()]
        # a hanging replica delays all its requests: once it is suspect, hedge them when late
        urgent = overdue or any(attempt.replica.record.is_suspect for attempt in running)
        # an attempt may be late because it waits for a write, and callers choose that write
        if not urgent and any(attempt.may_wait for attempt in running):
            return
        # a hedge must not delay other requests
        attempt = self._pool.replicas.take_for_hedge(
            self._schedule.tried, urgent, self._request.preference
        )
        if attempt is None:
            return
        if not self._budget.spend(urgent):
            self._pool.release_unsent(attempt)
            self._observer.on_hedge("refused")
            return
        self._hedge = self._send(attempt, "hedge")
        self._observer.on_hedge("sent")

    def _send(self, attempt: Attempt, purpose: str) -> SentAttempt[Result]:
        self._schedule.record_sent(attempt, hedge=purpose == "hedge")
        sent = self._pool.send(
            attempt, self._request.send, f"{purpose} {self._trace_noun}".rstrip()
        )
        self._running[sent.task] = sent
        return sent

    def _handle_end(self, ended: SentAttempt[Result]) -> None:
        if (error := ended.error()) is not None:
            self._handle_failure(ended, error)
            return
        self._request.on_result(ended.attempt.replica, ended.task.result())
        if ended.attempt.may_wait or not self._request.is_comparable:
            self._pool.end_attempt(ended, ReplicaOutcome.ANSWERED)
        else:
            if ended is not self._earlier:  # the earlier attempt did more than this request asks
                self._delay.observe(self._schedule.elapsed(ended.attempt))
            latency = self._schedule.relative_latency(ended.attempt)
            self._pool.end_attempt(ended, ReplicaOutcome.ANSWERED, latency)
        if self._best_result is None or self._missing(ended) < self._missing(self._best_result):
            self._best_result = ended

    def _missing(self, ended: SentAttempt[Result]) -> int:
        return self._request.count_missing(ended.task.result())

    def _can_improve(self, best: SentAttempt[Result]) -> bool:
        """Whether the best result is incomplete and a running attempt may return a better one."""
        return bool(self._running) and self._missing(best) > 0

    def _finish(self, winner: SentAttempt[Result]) -> Result:
        for loser in self._running.values():
            outcome = self._schedule.loser_outcome(loser.attempt, winner.attempt)
            self._pool.end_attempt(
                loser, ReplicaOutcome.ABANDONED if loser.attempt.may_wait else outcome
            )
        self._running.clear()
        if winner is self._hedge:
            self._observer.on_hedge("won")
        if winner is self._retry:
            self._observer.on_retry("won")
        return winner.task.result()

    def _handle_failure(self, ended: SentAttempt[Any], error: BaseException) -> None:
        """Retries, unless another attempt answered or is running. Raises the error if no retry
        was sent.
        """
        if not isinstance(error, WinnowError):
            self._pool.end_attempt(ended, ReplicaOutcome.FAILED)
            raise error
        if isinstance(error, GenerationGoneError):
            self._generation_gone = error
        given_up = ended.given_up is not None
        self._pool.end_attempt(
            ended, ReplicaOutcome.ABANDONED if given_up else self._outcome(ended, error)
        )
        if self._running or self._best_result is not None:
            return
        if self._schedule.claim_retry(error):
            self._retry = self._send_to_untried("retry", repeat=self._schedule.may_repeat(error))
        if not self._running:
            raise self._generation_gone or error
        self._observer.on_retry("sent")

    def _outcome(self, ended: SentAttempt[Any], error: WinnowError | None) -> ReplicaOutcome:
        """The outcome of an attempt without a result; `error` is None for a cancelled attempt."""
        is_late = error is None or isinstance(error, DeadlineExceededError)
        if ended.attempt.may_wait and is_late:
            return ReplicaOutcome.ABANDONED
        return self._schedule.outcome(ended.attempt, error)
