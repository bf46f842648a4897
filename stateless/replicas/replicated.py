"""A shard with any number of replicas, as a `Searcher`.

Replicas hold the same rows, or follow one log: then their generations may differ, and hits of one
are found on another by the writes that put them.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from winnow.deadline import Clock, Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError, WinnowError
from winnow.replicas.policy.hedging import HedgeBudget, HedgeDelays, HedgeSettings
from winnow.replicas.policy.retrying import RetrySettings
from winnow.searcher import Read, Retrieved, Searcher
from winnow.stateless.metrics import ReplicaMetrics
from winnow.stateless.policy.hedge_schedule import HedgeSchedule
from winnow.stateless.policy.replicas import Condition, ReplicaSettings
from winnow.stateless.replicas.call import HedgedCall
from winnow.stateless.replicas.pool import ReplicaPool, Send
from winnow.telemetry.tracing.span import span

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ReplicaPolicies:
    """How a replica is chosen, and when a second one is asked."""

    replicas: ReplicaSettings = field(default_factory=ReplicaSettings)
    hedge: HedgeSettings = field(default_factory=HedgeSettings)
    retry: RetrySettings = field(default_factory=RetrySettings)


class ReplicatedSearcher:
    """Asks one replica, and another one if that is late or fails."""

    def __init__(
        self,
        shard: int,
        reach: Callable[[str], Searcher],
        policies: ReplicaPolicies,
        clock: Clock,
        chance: random.Random,
        metrics: ReplicaMetrics,
    ) -> None:
        """`reach` gives the searcher at an address; raises UnavailableError if it is gone."""
        self._policies, self._metrics = policies, metrics.calls(shard)
        self._shard = shard
        self._pool = ReplicaPool(shard, reach, policies.replicas, clock, chance, metrics)
        # each shard has its own budget, so that a slow shard does not use up that of the others
        self._budget = HedgeBudget(policies.hedge)
        self._delays = HedgeDelays(policies.hedge, clock)
        self._absence: WinnowError = UnavailableError(f"no replica of shard {shard} was found yet")

    def update(
        self,
        addresses: Collection[str],
        absence: WinnowError | None = None,
        lost: Collection[str] = (),
        sequences: Mapping[str, int] | None = None,
        log_id: str = "",
    ) -> None:
        """From now on new requests go to these replicas; without any, `absence` is raised.

        Requests in hand of the `lost` replicas are given up and retried; all others go on.
        `sequences` are the last writes that replicas have, by address, in the log called `log_id`.
        """
        self._absence = absence or self._absence
        self._pool.update(addresses, lost, sequences, log_id)

    def retire(self) -> None:
        """From now on it keeps no metrics; questions that began with it may still ask it."""
        self._pool.retire()

    def conditions(self) -> dict[str, Condition]:
        """How each replica does, by address."""
        return self._pool.conditions()

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Which shard this is."""
        return await self._call("info", 0, lambda one: one.info(deadline), deadline)

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Finds the shard's hits that could be among the cluster's best."""
        return await self._call(
            "retrieve",
            0,
            lambda one: one.retrieve(question, depth, deadline),
            deadline,
            after=depth.after,
        )

    async def read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Reads passages that `retrieve` named."""
        return await self._call(
            "read",
            len(hits),
            lambda one: one.read(question, hits, max_answer_tokens, deadline),
            deadline,
            _unread,
            # whoever has these writes holds the passages, or knows that they are gone
            max((hit.sequence for hit in hits), default=0),
        )

    async def search(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Retrieves and reads at once."""
        return await self._call(
            "search",
            depth.passages,
            lambda one: one.search(question, depth, max_answer_tokens, deadline),
            deadline,
            _unread,
            depth.after,
        )

    async def _call(
        self,
        kind: str,
        passages: int,
        send: Send[Result],
        deadline: Deadline,
        lacks: Callable[[Result], int] = lambda _: 0,
        after: int = 0,
    ) -> Result:
        # a read of ten passages is not late by the measure of reads of one
        usual = self._delays.usual(kind, passages)
        silence = self._policies.replicas.outliers.silence
        race = HedgeSchedule(self._policies.retry, usual, silence, deadline)
        delay = self._delays.of(kind, passages)
        call = HedgedCall(
            send,
            race,
            self._pool,
            delay,
            self._budget,
            self._metrics,
            lacks,
            brief=not passages,
            after=after,
        )
        with span(f"shard {kind}", {"winnow.shard": self._shard}):
            answer = await call.run()
        if answer is None:
            # an exception that is raised again keeps the stack of every earlier raise
            raise self._absence.with_traceback(None)
        return answer


def _unread(read: Read) -> int:
    return read.unread
