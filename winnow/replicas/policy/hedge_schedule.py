"""The course of one request to a pool: sent, sent again where it is late or failed, and its end.

Knows to which replicas it was sent and when, a deadline and what is usual; does not know how
requests are sent. It is sent at most three times: first, once as a hedge, and once as a retry.
"""

from winnow.deadline import Deadline
from winnow.errors import WinnowError
from winnow.replicas.policy.hedging import Usual
from winnow.replicas.policy.outcomes import ReplicaOutcome, outcome_of
from winnow.replicas.policy.replicas import Attempt
from winnow.replicas.policy.retrying import RetrySettings, may_repeat, should_retry


class HedgeSchedule:
    """The attempts of one request."""

    def __init__(
        self, retry: RetrySettings, usual: Usual | None, silence: float, deadline: Deadline
    ) -> None:
        """`usual`: how long such requests take; `silence`: seconds after which one is overdue while
        that is not known. Time is that of the deadline's clock.
        """
        self._retry, self._deadline = retry, deadline
        self._overdue = usual.overdue if usual else silence
        # a replica that hangs must leave another one time to answer, also where answers take long
        hopeless = min(self._overdue, deadline.left() / 2)
        self._moments = [(hopeless, True)]
        """Seconds after which a hedge is tried, and whether it is overdue then."""
        if usual and usual.late <= hopeless:
            self._moments.insert(0, (usual.late, False))
        self._typical = usual.typical if usual else None
        self._sent: dict[Attempt, float] = {}
        self._since = deadline.clock()
        self._retried = 0

    @property
    def tried(self) -> frozenset[str]:
        """The addresses that it was sent to."""
        return frozenset(attempt.replica.address for attempt in self._sent)

    def sent(self, attempt: Attempt, hedge: bool = False) -> None:
        """Counts an attempt that is sent now. There is one hedge at most."""
        now = self._deadline.clock()
        self._sent[attempt] = now
        if hedge:
            self._moments.clear()
        else:
            self._since = now

    def next(self) -> float | None:
        """Seconds until a hedge should be tried, 0 or more; None if none should any more."""
        if not self._moments:
            return None
        return max(self._since + self._moments[0][0] - self._deadline.clock(), 0.0)

    @property
    def grace(self) -> float:
        """Seconds for another attempt to do better than a result that leaves something out."""
        return max(self._deadline.left() / 2, 0.0)

    def late(self) -> bool:
        """Consumes the moment that `next` named: whether the request is overdue, not just late."""
        return self._moments.pop(0)[1]

    def retries(self, error: WinnowError) -> bool:
        """Whether to send it again after its last attempt failed with `error`; counts the retry."""
        again = should_retry(
            self._retry, error, self._retried, self._deadline.left(), self._typical or 0.0
        )
        self._retried += again
        return again

    def may_repeat(self, error: WinnowError) -> bool:
        """Whether to send it again to a replica that was tried, if there is no other."""
        return may_repeat(self._retry, error)

    def waited(self, attempt: Attempt) -> float:
        """Seconds since an attempt was sent."""
        return self._deadline.clock() - self._sent[attempt]

    def relative(self, attempt: Attempt) -> float | None:
        """The same in multiples of the typical time of such a request; None if not known."""
        return self.waited(attempt) / self._typical if self._typical else None

    def outcome(self, attempt: Attempt, error: WinnowError | None) -> ReplicaOutcome:
        """The outcome of an attempt that ended with `error`; None: it was cancelled."""
        return outcome_of(error, self.waited(attempt), self._overdue)

    def lost(self, attempt: Attempt, winner: Attempt) -> ReplicaOutcome:
        """The outcome of an attempt that was still running when `winner` answered."""
        sent = list(self._sent)
        return (
            ReplicaOutcome.BEATEN
            if sent.index(attempt) < sent.index(winner)
            else ReplicaOutcome.ABANDONED
        )
