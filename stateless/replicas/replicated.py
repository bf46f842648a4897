"""A shard with any number of replicas, as a `Searcher`.

Replicas hold the same rows, or follow one log: then their generations may differ, and hits of one
are found on another by the writes that put them.
"""

import random
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from winnow.deadline import Clock, Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError, WinnowError
from winnow.replicas.call import PoolRequest
from winnow.replicas.policy.replicas import Replica
from winnow.replicas.pool import ReplicaPool
from winnow.replicas.routing import ReplicaPolicies, ReplicaRouter
from winnow.searcher import Read, Retrieved, Searcher
from winnow.stateless.metrics import ReplicaMetrics
from winnow.stateless.policy.progress import NeededWrite, ShardProgress
from winnow.telemetry.tracing.span import span

_log = structlog.get_logger("stateless.replicas")
Result = TypeVar("Result", ShardInfo, Retrieved, Read)


@dataclass(frozen=True, slots=True)
class ReplicaCondition:
    """The condition of a replica, for people who operate it."""

    active: bool
    """Whether it gets requests; if not, it was ejected."""
    calls: int = 0
    """Requests that it has in hand."""
    sequence: int = 0
    """The last write that it is known to have."""
    behind: int = 0
    """Writes that another replica has and it does not."""


class ReplicatedSearcher:
    """Asks one replica, and another one if that is late or fails."""

    def __init__(
        self,
        shard: int,
        reach: Callable[[str], Searcher],
        policies: ReplicaPolicies,
        *,
        clock: Clock,
        chance: random.Random,
        metrics: ReplicaMetrics,
    ) -> None:
        """`reach` gives the searcher at an address; raises UnavailableError if it is gone."""
        self._shard, self._metrics = shard, metrics.shard(shard)
        self._pool = ReplicaPool(
            reach, policies.replicas, clock=clock, rng=chance, observer=self._metrics
        )
        self._router = ReplicaRouter(self._pool, policies, clock, observer=self._metrics)
        self._progress = ShardProgress(clock, lambda: self._pool.replicas.by_address)
        self._absence: WinnowError = UnavailableError(f"no replica of shard {shard} was found yet")
        self._retired = False
        self._lagging: set[str] = set()
        """The replicas that were logged as lagging."""

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
        self._pool.update(addresses, lost)
        self._progress.told(sequences or {}, log_id)
        self._tell_lag()

    def retire(self) -> None:
        """From now on it keeps no metrics; questions that began with it may still ask it."""
        self._retired = True
        self._pool.retire()

    def conditions(self) -> dict[str, ReplicaCondition]:
        """The condition of each replica, by address."""
        behind = self._progress.behind()
        return {
            address: ReplicaCondition(
                r.active, r.outstanding, self._progress.sequence(r), behind[address]
            )
            for address, r in self._pool.replicas.by_address.items()
        }

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
            # a replica that has these writes holds the passages, or knows that they are gone
            after=max((hit.sequence for hit in hits), default=0),
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
            after=depth.after,
        )

    async def _call(
        self,
        kind: str,
        passages: int,
        ask: Callable[[Searcher], Coroutine[Any, Any, Result]],
        deadline: Deadline,
        after: int = 0,
    ) -> Result:
        if self._progress.lagging() != self._lagging:
            self._tell_lag()
        request = PoolRequest(
            kind=kind,
            work=passages,
            send=ask,
            deadline=deadline,
            is_brief=not passages,
            preference=NeededWrite(self._progress, after),
            count_missing=_unread,
            on_result=self._reached,
        )
        with span(f"shard {kind}", {"winnow.shard": self._shard}):
            answer = await self._router.call(request)
        if answer is None:
            # an exception that is raised again keeps the stack of every earlier raise
            raise self._absence.with_traceback(None)
        return answer

    def _reached(self, replica: Replica, result: ShardInfo | Retrieved | Read) -> None:
        if not isinstance(result, ShardInfo):
            self._progress.of(replica).reached(result.sequence, result.log_id)

    def _tell_lag(self) -> None:
        """Logs which replicas lag, by how many writes, and which do not any more."""
        behind, lagging = self._progress.behind(), self._progress.lagging()
        if self._retired:
            return
        for address, writes in behind.items():
            self._metrics.lag(address, writes)
        for address in sorted(lagging - self._lagging):
            _log.warning("replica lags", shard=self._shard, address=address, writes=behind[address])
        for address in sorted(self._lagging & behind.keys() - lagging):
            _log.info("replica lags no more", shard=self._shard, address=address)
        self._lagging = lagging


def _unread(result: ShardInfo | Retrieved | Read) -> int:
    return result.unread if isinstance(result, Read) else 0
