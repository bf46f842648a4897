"""Retrieves from the shards of a cluster by one call to each of a few content nodes.

If a call is late or fails, its shards with another replica are called one by one, as
`ReplicatedSearcher` calls them. The call to the node counts as the first attempt of each of them.
So only the shards that need a hedge or a retry get one.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from winnow.deadline import Clock, Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.errors import UnavailableError, WinnowError
from winnow.replicas.call import EarlierAttempt
from winnow.replicas.policy.hedge_schedule import HedgeSchedule
from winnow.replicas.policy.hedging import HedgeDelays, LatencyEstimate
from winnow.replicas.policy.outcomes import ReplicaOutcome, outcome_of
from winnow.replicas.routing import ReplicaPolicies
from winnow.searcher import MAX_CALL_SHARDS, ContentNode, RequestedShard, Retrieved
from winnow.stateless.policy.covering import cover
from winnow.stateless.replicas.node_calls import NodeCalls
from winnow.stateless.replicas.partial import PartialResult, SendJoint, Shards
from winnow.stateless.replicas.replicated import ReplicatedSearcher
from winnow.stateless.replicas.shared_retrieval import MAX_CALL_HITS
from winnow.telemetry.tracing.span import Attributes, SpanKind, span

_Results = Sequence[Retrieved | Exception]
_GIVEN_UP = "the server was given up"


@dataclass(eq=False, slots=True, kw_only=True)
class _NodeCall:
    """A call to a node."""

    address: str
    shards: Sequence[RequestedShard]
    deadline: Deadline
    estimate: LatencyEstimate | None
    late_after: float | None
    """Seconds after which the call counts as late; None for never."""
    overdue_after: float
    """Seconds after which the node probably hangs."""
    task: asyncio.Task[_Results]
    sent_at: float = field(init=False)
    seconds: float = field(init=False, default=0.0)
    """Duration, once it has ended."""
    given_up: WinnowError | None = None
    """The reason, if the node was given up."""
    waiting: set[int] = field(init=False)
    """The shards whose outcome is not recorded yet."""
    lost: set[int] = field(init=False, default_factory=set)
    """The shards that another node has to answer."""
    _loss: asyncio.Future[None] = field(init=False)
    """Ends when further shards are lost."""

    def __post_init__(self) -> None:
        self.sent_at = self.deadline.clock()
        self.waiting = {each.shard for each in self.shards}
        self._loss = self.task.get_loop().create_future()

    def lose(self, shards: Collection[int], error: WinnowError) -> None:
        """Has another node answer these shards; fails the call with `error` if none is left."""
        self.lost.update(each.shard for each in self.shards if each.shard in shards)
        if len(self.lost) < len(self.shards):
            self._loss.set_result(None)
            self._loss = self.task.get_loop().create_future()
        elif self.given_up is None:
            self.given_up = error
            self.task.cancel()

    async def wait(self, shards: Collection[int], may_be_late: bool) -> None:
        """Waits until the call ends, or is late, or one of these shards is lost."""
        while not self.task.done() and self.lost.isdisjoint(shards):
            seconds = None
            if may_be_late and self.late_after is not None:
                seconds = max(self.sent_at + self.late_after - self.deadline.clock(), 0.0)
            done, _ = await asyncio.wait(
                (self.task, self._loss), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return

    def results(self) -> dict[int, Retrieved | Exception]:
        """The result of each shard, once the call has ended."""
        error: BaseException | None = self.given_up
        if self.task.cancelled():
            error = error or UnavailableError(f"{self.address}: the call was cancelled")
        else:
            error = self.task.exception()
        if error is None:
            results = zip(self.shards, self.task.result(), strict=True)
            return {each.shard: result for each, result in results}
        if not isinstance(error, Exception):
            raise error
        return {each.shard: error for each in self.shards}

    async def result_of(self, shard: int) -> Retrieved:
        """Awaits the result of a shard; raises its error. Cancelling it leaves the call running."""
        await asyncio.wait([self.task])
        result = self.results()[shard]
        if isinstance(result, Exception):
            raise result.with_traceback(None)
        return result

    @property
    def relative_latency(self) -> float | None:
        """Duration of the call divided by the typical duration; None if that is unknown."""
        typical = self.estimate.typical if self.estimate else 0.0
        return self.seconds / typical if typical else None


class JointCalls:
    """The calls to content nodes for the retrievals of all questions."""

    def __init__(
        self,
        shards: Mapping[int, ReplicatedSearcher],
        node_at: Callable[[str], ContentNode],
        nodes: NodeCalls,
        *,
        policies: ReplicaPolicies,
        clock: Clock,
    ) -> None:
        """`node_at` returns the node at an address, or raises UnavailableError if it was removed.

        `nodes` gets the calls to each node.
        """
        self.shards, self.nodes, self.policies = shards, nodes, policies
        self._node_at = node_at
        # by the first shard of a call: replicas of one shard are compared with each other
        self._delays = HedgeDelays(policies.hedge, clock)
        self._running: set[_NodeCall] = set()

    def begin(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        deadline: Deadline,
        required: Mapping[int, int],
        alone: Collection[int] = (),
        shards: Collection[int] | None = None,
    ) -> "QuestionRetrieval":
        """Returns the retrieval of a question, which has sent nothing yet.

        Args:
            question: the question.
            depth: how many passages each shard ranks; `after` is ignored.
            deadline: deadline of the calls.
            required: number of the write that a shard must have, by shard; 0 by default.
            alone: shards that are not called with others.
            shards: the shards to retrieve from; None for all.

        """
        choices: dict[tuple[str, ...], list[int]] = {}
        others = []
        for shard in self.shards if shards is None else shards:
            needed = required.get(shard, 0)
            addresses = () if shard in alone else self.shards[shard].joint_addresses(needed)
            if addresses:
                choices.setdefault(addresses, []).append(shard)
            else:
                others.append(shard)
        most = max(min(MAX_CALL_SHARDS, MAX_CALL_HITS // depth.passages), 1)
        parts = [
            (address, [RequestedShard(shard, required.get(shard, 0)) for shard in part])
            for address, own in cover(choices, self.nodes.cost).items()
            for part in _parts(sorted(own), most)
        ]
        return QuestionRetrieval(
            self,
            question,
            depth=replace(depth, after=0),
            deadline=deadline,
            parts=parts,
            alone=others,
        )

    async def retrieve_each(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | Exception]:
        """Retrieves from some shards; returns a result or an error for each, in their order."""
        required = {each.shard: each.after for each in shards}
        own = [each for each in required if each in self.shards]
        results: dict[int, Retrieved | Exception] = {}

        async def collect(called: Shards, send: SendJoint[Retrieved]) -> None:
            try:
                ended = await send()
            except Exception as error:  # noqa: BLE001 (it is returned)
                results.update(dict.fromkeys(called, error))
                return
            results.update(ended.results)
            for some, further in ended.further.items():
                group.create_task(collect(some, further))

        with self.begin(question, depth, deadline, required, shards=own) as retrieval:
            async with asyncio.TaskGroup() as group:
                for called, send in retrieval.calls().items():
                    group.create_task(collect(called, send))
                for shard in retrieval.alone:
                    one = RequestedShard(shard, required[shard])
                    group.create_task(collect((shard,), partial(retrieval.call_alone, one)))
        missing = UnavailableError("this front node does not serve the shard")
        return [results.get(each.shard, missing) for each in shards]

    def give_up(self, lost: Mapping[str, Collection[int]], why: str) -> None:
        """Retries some shards of the running calls to some nodes in time, each at another node.

        `lost` has the shards by the address of the node. For its other shards a call continues.
        """
        for call in self._running:
            if shards := lost.get(call.address):
                error = UnavailableError(f"{call.address} was given up: {why}")
                call.lose(shards, error.with_public(_GIVEN_UP))

    def send(
        self,
        address: str,
        shards: Sequence[RequestedShard],
        question: EncodedQuestion,
        depth: RetrievalDepth,
        deadline: Deadline,
    ) -> _NodeCall:
        """Sends a call."""
        estimate = self._delays.estimate(str(shards[0].shard), len(shards))
        silence = self.policies.replicas.outliers.silence
        schedule = HedgeSchedule(self.policies.retry, estimate, silence, deadline)
        overdue = estimate.overdue_after if estimate else silence

        async def call_node() -> _Results:
            attributes: Attributes = {"server.address": address, "winnow.shards": len(shards)}
            with span("retrieve from node", attributes, SpanKind.CLIENT):
                return await self._node_at(address).retrieve(question, depth, shards, deadline)

        task = asyncio.create_task(call_node())
        call = _NodeCall(
            address=address,
            shards=shards,
            deadline=deadline,
            estimate=estimate,
            late_after=schedule.hedge_wait(),
            overdue_after=overdue,
            task=task,
        )
        self.nodes.begin(address)
        self._running.add(call)
        task.add_done_callback(lambda _: self._end(call))
        return call

    def _end(self, call: _NodeCall) -> None:
        self._running.discard(call)
        call.seconds = call.deadline.clock() - call.sent_at
        if call.task.cancelled() or call.task.exception() is not None:
            self.nodes.end(call.address, None)
            return
        self.nodes.end(call.address, call.relative_latency)
        self._delays.of(str(call.shards[0].shard), len(call.shards)).observe(call.seconds)

    def record_answers(self, call: _NodeCall, results: Mapping[int, Retrieved]) -> None:
        """Records the results of some shards of a call that has ended.

        The latency is recorded for one shard. If its replica is too slow, so are the others.
        """
        for shard, result in results.items():
            call.waiting.discard(shard)
            self.shards[shard].record_joint(call.address, result)
        first = call.shards[0].shard
        if first not in results or call.relative_latency is None:
            return
        if self.shards[first].record_latency(call.address, call.relative_latency):
            for shard in results.keys() - {first}:
                self.shards[shard].record_outcome(call.address, ReplicaOutcome.OUTLIER)

    def record_cancelled(self, call: _NodeCall) -> None:
        """Records the outcome of the shards that still wait for a call when it is cancelled."""
        elapsed = call.deadline.clock() - call.sent_at
        outcome = outcome_of(None, elapsed, call.overdue_after)
        for shard in call.waiting:
            self.shards[shard].record_outcome(call.address, outcome)


class QuestionRetrieval:
    """The retrieval of one question. Leaving the context cancels the calls that still run."""

    def __init__(
        self,
        owner: JointCalls,
        question: EncodedQuestion,
        *,
        depth: RetrievalDepth,
        deadline: Deadline,
        parts: Sequence[tuple[str, Sequence[RequestedShard]]],
        alone: Sequence[int],
    ) -> None:
        self._owner, self._question, self._depth = owner, question, depth
        self._deadline, self._parts = deadline, parts
        self.alone = alone
        """The shards that have to be called alone."""
        self._calls: list[_NodeCall] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for call in self._calls:
            if not call.task.done():
                self._owner.record_cancelled(call)
                call.task.cancel()

    def calls(self) -> dict[Shards, SendJoint[Retrieved]]:
        """The calls to nodes, by their shards."""
        return {
            tuple(each.shard for each in shards): partial(self._call, address, shards)
            for address, shards in self._parts
        }

    async def call_alone(self, requested: RequestedShard) -> PartialResult[Retrieved]:
        """Calls a shard alone, with its hedge and its retry."""
        searcher = self._owner.shards[requested.shard]
        depth = replace(self._depth, after=requested.after)
        found = await searcher.retrieve(self._question, depth, self._deadline)
        return PartialResult({requested.shard: found})

    async def _call(
        self, address: str, shards: Sequence[RequestedShard]
    ) -> PartialResult[Retrieved]:
        call = self._owner.send(address, shards, self._question, self._depth, self._deadline)
        self._calls.append(call)
        return await self._await(call, shards)

    async def _await(
        self, call: _NodeCall, shards: Sequence[RequestedShard], may_hedge: bool = True
    ) -> PartialResult[Retrieved]:
        """Awaits the call for some of its shards.

        Shards that are lost continue alone; if it `may_hedge` and is late, so do those that another
        replica has.
        """
        await call.wait([each.shard for each in shards], may_hedge)
        if call.task.done():
            return self._collect(call, shards)
        if lost := [each for each in shards if each.shard in call.lost]:
            alone = lost
        else:
            may_hedge = False
            replicas = self._owner.shards
            alone = [each for each in shards if replicas[each.shard].has_other(call.address)]
        others = [each for each in shards if each not in alone]
        if not alone:
            return await self._await(call, others, may_hedge)
        further = self._continue(call, alone)
        if others:
            names = tuple(each.shard for each in others)
            further[names] = partial(self._await, call, others, may_hedge)
        return PartialResult({}, further)

    def _collect(
        self, call: _NodeCall, shards: Sequence[RequestedShard]
    ) -> PartialResult[Retrieved]:
        """The results of an ended call for some of its shards; failed shards are called alone."""
        every, failed = call.results(), []
        results: dict[int, Retrieved] = {}
        for each in shards:
            if isinstance(result := every[each.shard], Retrieved):
                results[each.shard] = result
            else:
                failed.append(each)
        self._owner.record_answers(call, results)
        return PartialResult(results, self._continue(call, failed))

    def _continue(
        self, call: _NodeCall, shards: Sequence[RequestedShard]
    ) -> dict[Shards, SendJoint[Retrieved]]:
        """Calls for each shard alone, with the call to the node as the first attempt."""
        call.waiting.difference_update(each.shard for each in shards)
        return {(each.shard,): partial(self._continue_one, call, each) for each in shards}

    async def _continue_one(
        self, call: _NodeCall, requested: RequestedShard
    ) -> PartialResult[Retrieved]:
        shard, depth = requested.shard, replace(self._depth, after=requested.after)
        earlier = EarlierAttempt(
            address=call.address,
            sent_at=call.sent_at,
            estimate=call.estimate,
            result=partial(call.result_of, shard),
        )
        searcher = self._owner.shards[shard]
        found = await searcher.retrieve(self._question, depth, self._deadline, earlier)
        return PartialResult({shard: found})


def _parts(shards: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """Splits shards into parts of at most `most`."""
    for first in range(0, len(shards), most):
        yield shards[first : first + most]
