"""When one request is hedged and retried, and the outcome of each of its attempts.

The schedule knows when the request was sent to which replica, its deadline, and the expected
latency. It does not know how requests are sent. A request is sent at most three times: the first
attempt, one hedge and one retry.
"""

from winnow.deadline import Deadline
from winnow.errors import WinnowError
from winnow.replicas.policy.hedging import LatencyEstimate
from winnow.replicas.policy.outcomes import ReplicaOutcome, outcome_of
from winnow.replicas.policy.replicas import Attempt
from winnow.replicas.policy.retrying import RetrySettings, may_repeat, should_retry


class HedgeSchedule:
    """The hedge and retry times of one request, and its attempts so far."""

    def __init__(
        self,
        retry: RetrySettings,
        estimate: LatencyEstimate | None,
        silence: float,
        deadline: Deadline,
    ) -> None:
        """Starts the schedule at the current time of the deadline's clock.

        `estimate`: the expected latency of the request. `silence`: seconds after which the
        request is overdue if there is no estimate.
        """
        self._retry, self._deadline = retry, deadline
        self._overdue = estimate.overdue_after if estimate else silence
        # if the first replica hangs, half the time remains for another one to answer
        overdue_after = min(self._overdue, deadline.left() / 2)
        self._hedges = [(overdue_after, True)]
        """Pending hedges: seconds after the attempt, and whether the request is overdue then."""
        if estimate and estimate.late_after <= overdue_after:
            self._hedges.insert(0, (estimate.late_after, False))
        self._typical = estimate.typical if estimate else None
        self._sent: dict[Attempt, float] = {}
        self._hedge_base = deadline.clock()
        """When the first attempt was sent, or the retry if there was one."""
        self._retries = 0

    @property
    def tried(self) -> frozenset[str]:
        """The addresses of the replicas that the request was sent to."""
        return frozenset(attempt.replica.address for attempt in self._sent)

    def record_sent(self, attempt: Attempt, hedge: bool = False, at: float | None = None) -> None:
        """Records an attempt. A hedge cancels the pending hedges.

        `at` is when the attempt was sent, on the deadline's clock; None means now.
        """
        now = self._deadline.clock() if at is None else at
        self._sent[attempt] = now
        if hedge:
            self._hedges.clear()
        else:
            self._hedge_base = now

    def hedge_wait(self) -> float | None:
        """Seconds until the next hedge, 0 or more; None if no hedge is pending."""
        if not self._hedges:
            return None
        return max(self._hedge_base + self._hedges[0][0] - self._deadline.clock(), 0.0)

    @property
    def wait_for_more(self) -> float:
        """Seconds to wait for a more complete result after an incomplete one."""
        return max(self._deadline.left() / 2, 0.0)

    def pop_hedge(self) -> bool:
        """Removes the next pending hedge. Returns True if the request is overdue, False if it is
        only late.
        """
        return self._hedges.pop(0)[1]

    def claim_retry(self, error: WinnowError) -> bool:
        """Returns whether to retry after `error`. If so, counts the retry."""
        allowed = should_retry(
            self._retry, error, self._retries, self._deadline.left(), self._typical or 0.0
        )
        self._retries += allowed
        return allowed

    def may_repeat(self, error: WinnowError) -> bool:
        """Whether a retry after `error` may go to a tried replica, if there is no other."""
        return may_repeat(self._retry, error)

    def elapsed(self, attempt: Attempt) -> float:
        """Seconds since an attempt was sent."""
        return self._deadline.clock() - self._sent[attempt]

    def relative_latency(self, attempt: Attempt) -> float | None:
        """`elapsed` divided by the typical latency of the request; None without an estimate."""
        return self.elapsed(attempt) / self._typical if self._typical else None

    def outcome(self, attempt: Attempt, error: WinnowError | None) -> ReplicaOutcome:
        """The outcome of an attempt without a result; `error` is None for a cancelled attempt."""
        return outcome_of(error, self.elapsed(attempt), self._overdue)

    def loser_outcome(self, attempt: Attempt, winner: Attempt) -> ReplicaOutcome:
        """The outcome of an attempt that was still running when `winner` answered."""
        sent = list(self._sent)
        return (
            ReplicaOutcome.BEATEN
            if sent.index(attempt) < sent.index(winner)
            else ReplicaOutcome.ABANDONED
        )
