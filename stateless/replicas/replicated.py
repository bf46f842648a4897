"""Makes all replicas of a shard one `Searcher`.

Replicas hold the same rows, or follow the same log. Replicas of one log may have different
generations. So a hit is identified on every replica by the write that put its passage.
"""

import random
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from winnow.deadline import Clock, Deadline
from winnow.domain.listing import Seen, SeenWrites, ShardRequest
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError, WinnowError
from winnow.replicas.call import EarlierAttempt, PoolRequest
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.replicas import Replica
from winnow.replicas.pool import ReplicaPool
from winnow.replicas.routing import ReplicaPolicies, ReplicaRouter
from winnow.searcher import Read, Retrieved, Searcher
from winnow.stateless.metrics import ReplicaMetrics
from winnow.stateless.policy.progress import NeededWrite, ShardProgress
from winnow.telemetry.tracing.span import span

_log = structlog.get_logger("stateless.replicas")
Result = TypeVar("Result", bound=ShardInfo | Retrieved | Read | SeenWrites)


@dataclass(frozen=True, slots=True)
class ReplicaCondition:
    """The condition of a replica, as operators see it."""

    is_active: bool
    """Whether the replica gets requests; False while it is ejected."""
    calls: int = 0
    """Number of running requests to the replica."""
    sequence: int = 0
    """Number of the last write that the replica is known to have."""
    lag: int = 0
    """Number of writes that the most advanced replica has and this replica lacks."""


class ReplicatedSearcher:
    """A `Searcher` that calls one replica, and another replica if the first is late or fails.

    It is also the `PassageSource` of its shard.
    """

    def __init__(
        self,
        shard: int,
        searcher_at: Callable[[str], Searcher],
        policies: ReplicaPolicies,
        *,
        clock: Clock,
        rng: random.Random,
        metrics: ReplicaMetrics,
        joint_calls: Callable[[str], int] = lambda _: 0,
    ) -> None:
        """Starts without replicas; see `update`.

        `searcher_at` returns the searcher at an address, or raises UnavailableError if the replica
        was removed. `joint_calls` returns how many joint calls run at an address.
        """
        self._shard, self._metrics = shard, metrics.for_shard(shard)
        self._pool = ReplicaPool(
            searcher_at,
            policies.replicas,
            clock=clock,
            rng=rng,
            observer=self._metrics,
            other_requests=joint_calls,
        )
        self._router = ReplicaRouter(self._pool, policies, clock, observer=self._metrics)
        self.passages = self
        self._progress = ShardProgress(clock, lambda: self._pool.replicas.by_address)
        self._absence: WinnowError = UnavailableError(f"no replica of shard {shard} was found yet")
        self._retired = False
        self._lagging: set[str] = set()
        """Addresses of the replicas that were logged as lagging."""
        self._level: tuple[tuple[str, ...], int] | None = None
        """If all replicas have the same last write: their addresses and this write. None if their
        last writes may differ.
        """

    def update(
        self,
        addresses: Collection[str],
        absence: WinnowError | None = None,
        lost: Collection[str] = (),
        sequences: Mapping[str, int] | None = None,
        log_id: str = "",
    ) -> None:
        """Sends new requests to these replicas.

        Args:
            addresses: addresses of the replicas.
            absence: error of requests while there is no replica; None keeps the previous error.
            lost: addresses whose running requests are given up and retried.
            sequences: number of the last write of each replica, by address.
            log_id: name of the log that contains these writes.

        """
        self._absence = absence or self._absence
        self._pool.update(addresses, lost)
        self._progress.record_poll(sequences or {}, log_id)
        self._level = None
        self._log_lag()

    def retire(self) -> None:
        """Stops updating the metrics of this shard. Running questions may still call it."""
        self._retired = True
        self._pool.retire()

    def conditions(self) -> dict[str, ReplicaCondition]:
        """Returns the condition of each replica, by address."""
        lag = self._progress.missing_writes()
        return {
            address: ReplicaCondition(r.active, r.load, self._progress.sequence(r), lag[address])
            for address, r in self._pool.replicas.by_address.items()
        }

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns what the shard is and holds, from one of its replicas."""
        return await self._call("info", 0, lambda replica: replica.info(deadline), deadline)

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        deadline: Deadline,
        earlier: EarlierAttempt[Retrieved] | None = None,
    ) -> Retrieved:
        """Finds the shard's hits that could be among the cluster's best.

        `earlier` is the first attempt, if a joint call has already sent it.
        """
        return await self._call(
            "retrieve",
            0,
            lambda replica: replica.retrieve(question, depth, deadline),
            deadline,
            after=depth.after,
            earlier=earlier,
        )

    def joint_addresses(self, after: int = 0) -> tuple[str, ...]:
        """Returns the sorted addresses that may be called for this shard in a joint call.

        Each of these replicas can answer now and has the write `after`. The result is empty if the
        shard must be called alone: to wait for the write, to probe a replica, or to fail because no
        replica exists.
        """
        for replica in self._pool.replicas.by_address.values():
            if not replica.active:
                return self._addresses_with(after)
        level = self._level or self._find_level()
        if level is not None and after <= level[1]:
            return level[0]
        return self._addresses_with(after)

    def _find_level(self) -> tuple[tuple[str, ...], int] | None:
        """Sets and returns `_level` if all replicas have the same last write, so that none lags."""
        replicas = self._pool.replicas.by_address
        sequences = {self._progress.sequence(replica) for replica in replicas.values()}
        if len(sequences) == 1:
            self._level = tuple(sorted(replicas)), sequences.pop()
            self._log_lag_changes()
        return self._level

    def _addresses_with(self, after: int) -> tuple[str, ...]:
        self._log_lag_changes()
        replicas = self._pool.replicas.by_address.values()
        if any(replica.record.wants_probe(brief=True) for replica in replicas):
            return ()
        needed = NeededWrite(self._progress, after)
        selected = needed.select([replica for replica in replicas if replica.active])
        return tuple(sorted(r.address for r in selected if not needed.may_wait(r)))

    def has_other(self, address: str) -> bool:
        """Whether there is an active replica at another address."""
        replicas = self._pool.replicas.by_address.items()
        return any(own != address and replica.active for own, replica in replicas)

    def record_joint_result(self, address: str, retrieved: Retrieved) -> None:
        """Records the result of a joint call for this shard, without its latency."""
        self._router.budget.earn()
        replica = self._pool.replicas.by_address.get(address)
        if replica is None:
            return
        if replica.record.is_suspect and replica.active:
            self._pool.record_outcome(address, ReplicaOutcome.ANSWERED)
        if self._level is None or retrieved.sequence > self._level[1]:
            self._record_progress(replica, retrieved)

    def record_latency(self, address: str, times_typical: float) -> bool:
        """Records the latency of a joint call. Returns True if this ejects the replica.

        `times_typical` is the latency divided by the typical latency.
        """
        replica = self._pool.replicas.by_address.get(address)
        if replica is None or not replica.active:
            return False
        self._pool.record_outcome(address, ReplicaOutcome.ANSWERED, times_typical)
        return not replica.active

    def record_outcome(self, address: str, outcome: ReplicaOutcome) -> None:
        """Records the outcome of a joint call for this shard."""
        replica = self._pool.replicas.by_address.get(address)
        if replica is not None and replica.active:
            self._pool.record_outcome(address, outcome)

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        """Reads the passages of hits that `retrieve` returned."""
        return await self._call(
            "read",
            len(hits),
            lambda replica: replica.read(question, hits, deadline),
            deadline,
            # a replica with these writes has the passages, or later writes that deleted them
            after=max((hit.sequence for hit in hits), default=0),
        )

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        """Retrieves and reads in one round trip."""
        return await self._call(
            "search",
            depth.passages,
            lambda replica: replica.search(question, depth, deadline),
            deadline,
            after=depth.after,
        )

    async def fetch(self, request: ShardRequest[Seen], deadline: Deadline) -> Seen:
        """Sends a request for passages to one replica, as `PassageSource.fetch` specifies.

        Replicas of one log have the same passages, but some have more writes. `request.after`
        chooses a replica that has all acknowledged writes, so any replica can return any page.
        """
        return await self._call(
            request.kind,
            0,
            lambda replica: replica.passages.fetch(request, deadline),
            deadline,
            after=request.after,
            is_comparable=False,
        )

    async def _call(
        self,
        kind: str,
        passages: int,
        send: Callable[[Searcher], Coroutine[Any, Any, Result]],
        deadline: Deadline,
        after: int = 0,
        earlier: EarlierAttempt[Result] | None = None,
        is_comparable: bool = True,
    ) -> Result:
        self._log_lag_changes()
        request = PoolRequest(
            kind=kind,
            work=passages,
            send=send,
            deadline=deadline,
            is_brief=not passages,
            is_comparable=is_comparable,
            preference=NeededWrite(self._progress, after),
            count_missing=_count_unread,
            on_result=self._record_progress,
            earlier=earlier,
        )
        with span(f"shard {kind}", {"winnow.shard": self._shard}):
            answer = await self._router.call(request)
        if answer is None:
            # reset, because a traceback grows each time that the same exception is raised
            raise self._absence.with_traceback(None)
        return answer

    def _record_progress(
        self, replica: Replica, result: ShardInfo | Retrieved | Read | SeenWrites
    ) -> None:
        if isinstance(result, ShardInfo):
            return
        progress = self._progress.progress_of(replica)
        if result.sequence > progress.sequence:
            progress.record_answer(result.sequence, result.log_id)
            self._level = None

    def _log_lag_changes(self) -> None:
        if self._progress.lagging_addresses() != self._lagging:
            self._log_lag()

    def _log_lag(self) -> None:
        """Logs which replicas started or stopped lagging, and updates the metrics of all."""
        behind, lagging = self._progress.missing_writes(), self._progress.lagging_addresses()
        if self._retired:
            return
        for address, writes in behind.items():
            self._metrics.set_lag(address, writes)
        for address in sorted(lagging - self._lagging):
            _log.warning("replica lags", shard=self._shard, address=address, writes=behind[address])
        for address in sorted(self._lagging & behind.keys() - lagging):
            _log.info("replica no longer lags", shard=self._shard, address=address)
        self._lagging = lagging


def _count_unread(result: ShardInfo | Retrieved | Read | SeenWrites) -> int:
    return result.unread if isinstance(result, Read) else 0
