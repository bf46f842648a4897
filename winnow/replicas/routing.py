"""Routes each request to a pool of replicas by one hedged call."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from winnow.deadline import Clock
from winnow.replicas.call import HedgedCall, PoolRequest
from winnow.replicas.observer import PoolObserver
from winnow.replicas.policy.hedge_schedule import HedgeSchedule
from winnow.replicas.policy.hedging import HedgeBudget, HedgeDelays, HedgeSettings
from winnow.replicas.policy.replicas import ReplicaSettings
from winnow.replicas.policy.retrying import RetrySettings
from winnow.replicas.pool import ReplicaPool

Backend = TypeVar("Backend")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ReplicaPolicies:
    """How a replica is chosen, and when a request is hedged or retried."""

    replicas: ReplicaSettings = field(default_factory=ReplicaSettings)
    hedge: HedgeSettings = field(default_factory=HedgeSettings)
    retry: RetrySettings = field(default_factory=RetrySettings)


class ReplicaRouter(Generic[Backend]):
    """Sends each request to one replica, and to another one if the first is late or fails."""

    def __init__(
        self,
        pool: ReplicaPool[Backend],
        policies: ReplicaPolicies,
        clock: Clock,
        *,
        observer: PoolObserver,
        trace_noun: str = "",
    ) -> None:
        """`trace_noun` names the callee in traces."""
        self._pool, self._policies = pool, policies
        self._observer, self._trace_noun = observer, trace_noun
        # each pool has its own budget, so that a slow pool does not use up the budget of others
        self.budget = HedgeBudget(policies.hedge)
        self.delays = HedgeDelays(policies.hedge, clock)

    async def call(self, request: PoolRequest[Backend, Result]) -> Result | None:
        """Returns the result of a replica; None if there is no replica.

        Raises the same errors as `HedgedCall.run`.
        """
        kind, work, policies = request.kind, request.work, self._policies
        silence = policies.replicas.outliers.silence
        # the estimate depends on the work: much work takes longer
        earlier, estimate = request.earlier, None
        if request.is_comparable:
            estimate = earlier.estimate if earlier else self.delays.estimate(kind, work)
        call = HedgedCall(
            request,
            self._pool,
            schedule=HedgeSchedule(policies.retry, estimate, silence, request.deadline),
            delay=self.delays.delay_of(kind, work),
            budget=self.budget,
            observer=self._observer,
            trace_noun=self._trace_noun,
        )
        return await call.run()
