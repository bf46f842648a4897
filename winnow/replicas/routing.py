"""Requests to a pool of replicas, each by one hedged call."""

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
    """How a replica is chosen, and when a second one is asked."""

    replicas: ReplicaSettings = field(default_factory=ReplicaSettings)
    hedge: HedgeSettings = field(default_factory=HedgeSettings)
    retry: RetrySettings = field(default_factory=RetrySettings)


class ReplicaRouter(Generic[Backend]):
    """Asks one replica, and another one if that is late or fails."""

    def __init__(
        self,
        pool: ReplicaPool[Backend],
        policies: ReplicaPolicies,
        clock: Clock,
        *,
        observer: PoolObserver,
        noun: str = "",
    ) -> None:
        """`noun`: what traces say is asked."""
        self._pool, self._policies = pool, policies
        self._observer, self._noun = observer, noun
        # each pool has its own budget, so that a slow pool does not use up that of the others
        self._budget = HedgeBudget(policies.hedge)
        self.delays = HedgeDelays(policies.hedge, clock)

    async def call(self, request: PoolRequest[Backend, Result]) -> Result | None:
        """Has a replica answer; None if there is no replica at all. Errors: `HedgedCall.run`."""
        kind, work, policies = request.kind, request.work, self._policies
        silence = policies.replicas.outliers.silence
        # a request for much work is not late by the measure of requests for little
        usual = self.delays.usual(kind, work)
        call = HedgedCall(
            request,
            self._pool,
            schedule=HedgeSchedule(policies.retry, usual, silence, request.deadline),
            delay=self.delays.of(kind, work),
            budget=self._budget,
            observer=self._observer,
            noun=self._noun,
        )
        return await call.run()
