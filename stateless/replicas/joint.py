"""Retrieves from all shards of a cluster by joint calls: one call to each of a few content nodes.

If a joint call is late or fails, `ReplicatedSearcher` calls those of its shards one by one that
have another replica. The joint call counts as the first attempt for each of these shards, so the
next attempt is their hedge or retry.
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
from winnow.replicas.pool import given_up_error
from winnow.replicas.routing import ReplicaPolicies
from winnow.searcher import MAX_CALL_SHARDS, ContentNode, RequestedShard, Retrieved
from winnow.stateless.policy.covering import cover
from winnow.stateless.replicas.node_calls import NodeCalls
from winnow.stateless.replicas.partial import PartialResult, SendJoint, Shards
from winnow.stateless.replicas.replicated import ReplicatedSearcher
from winnow.stateless.replicas.shared_retrieval import MAX_CALL_HITS
from winnow.telemetry.tracing.span import Attributes, SpanKind, span

_Results = Sequence[Retrieved | Exception]


@dataclass(eq=False, slots=True, kw_only=True)
class _NodeCall:
    """A joint call: one call to a node for several shards."""

    address: str
    shards: Sequence[RequestedShard]
    deadline: Deadline
    estimate: LatencyEstimate | None
    late_after: float | None
    """Seconds after which the call is late; None for never."""
    overdue_after: float
    """Seconds after which the node probably hangs."""
    task: asyncio.Task[_Results]
    sent_at: float = field(init=False)
    seconds: float = field(init=False, default=0.0)
    """Duration of the call, set when it has ended."""
    given_up: WinnowError | None = None
    """The error of the call, if the call was given up for all its shards."""
    unrecorded: set[int] = field(init=False)
    """The shards whose outcome is not recorded yet."""
    given_up_shards: set[int] = field(init=False, default_factory=set)
    """The shards that another node must answer."""
    _more_given_up: asyncio.Future[None] = field(init=False)
    """Is done when more shards are given up, and is then replaced."""

    def __post_init__(self) -> None:
        self.sent_at = self.deadline.clock()
        self.unrecorded = {each.shard for each in self.shards}
        self._more_given_up = self.task.get_loop().create_future()

    def give_up_shards(self, shards: Collection[int], error: WinnowError) -> None:
        """Makes other nodes answer these shards. If no shard remains, fails the call."""
        self.given_up_shards.update(each.shard for each in self.shards if each.shard in shards)
        if len(self.given_up_shards) < len(self.shards):
            self._more_given_up.set_result(None)
            self._more_given_up = self.task.get_loop().create_future()
        elif self.given_up is None:
            self.given_up = error
            self.task.cancel()

    async def wait(self, shards: Collection[int], may_be_late: bool) -> None:
        """Waits until the call ends, or one of these shards is given up.

        If it `may_be_late`, the wait also ends when the call is late.
        """
        while not self.task.done() and self.given_up_shards.isdisjoint(shards):
            seconds = None
            if may_be_late and self.late_after is not None:
                seconds = max(self.sent_at + self.late_after - self.deadline.clock(), 0.0)
            done, _ = await asyncio.wait(
                (self.task, self._more_given_up),
                timeout=seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                return

    def results(self) -> dict[int, Retrieved | Exception]:
        """Returns the result or error of each shard. The call must have ended."""
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
        """Awaits the result of a shard, or raises its error.

        If this method is cancelled, the call continues.
        """
        await asyncio.wait([self.task])
        result = self.results()[shard]
        if isinstance(result, Exception):
            raise result.with_traceback(None)
        return result

    @property
    def relative_latency(self) -> float | None:
        """Duration of the call divided by its typical duration; None without an estimate."""
        typical = self.estimate.typical if self.estimate else 0.0
        return self.seconds / typical if typical else None


class JointCalls:
    """Sends the joint calls of all questions to content nodes, and records their outcomes."""

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

        `nodes` counts the joint calls to each node. `shards` has the searcher of each shard.
        """
        self.shards, self.nodes, self.policies = shards, nodes, policies
        self._node_at = node_at
        # delays are kept by the first shard of a call: only its replicas are compared
        self._delays = HedgeDelays(policies.hedge, clock)
        self._running: dict[_NodeCall, None] = {}
        """The running calls, in the order in which they were sent."""

    def plan_retrieval(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        deadline: Deadline,
        required: Mapping[int, int],
        alone: Collection[int] = (),
        shards: Collection[int] | None = None,
    ) -> "QuestionRetrieval":
        """Chooses the nodes for the retrieval of a question; sends nothing yet.

        Args:
            question: the question.
            depth: how many passages each shard ranks; `after` is ignored.
            deadline: deadline of the calls.
            required: number of the write that a shard must have, by shard; 0 if a shard is missing.
            alone: shards that must not be in joint calls.
            shards: shards to retrieve from; None for all.

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
        """Retrieves from `shards`; returns a result or an error for each, in the same order."""
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

        with self.plan_retrieval(question, depth, deadline, required, shards=own) as retrieval:
            async with asyncio.TaskGroup() as group:
                for called, send in retrieval.calls().items():
                    group.create_task(collect(called, send))
                for shard in retrieval.alone:
                    one = RequestedShard(shard, required[shard])
                    group.create_task(collect((shard,), partial(retrieval.call_alone, one)))
        missing = UnavailableError("this front node does not serve the shard")
        return [results.get(each.shard, missing) for each in shards]

    def give_up(self, lost: Mapping[str, Collection[int]], why: str) -> None:
        """Gives up some shards of the running calls, so that other nodes answer them in time.

        `lost` has these shards by the address of their node. The calls continue for their other
        shards.
        """
        for call in self._running:
            if shards := lost.get(call.address):
                call.give_up_shards(shards, given_up_error(call.address, why))

    def send_call(
        self,
        address: str,
        shards: Sequence[RequestedShard],
        question: EncodedQuestion,
        depth: RetrievalDepth,
        deadline: Deadline,
    ) -> _NodeCall:
        """Sends a joint call to the node at `address`."""
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
        self.nodes.record_start(address)
        self._running[call] = None
        task.add_done_callback(lambda _: self._record_end(call))
        return call

    def _record_end(self, call: _NodeCall) -> None:
        self._running.pop(call, None)
        call.seconds = call.deadline.clock() - call.sent_at
        if call.task.cancelled() or call.task.exception() is not None:
            self.nodes.record_end(call.address, None)
            return
        self.nodes.record_end(call.address, call.relative_latency)
        self._delays.delay_of(str(call.shards[0].shard), len(call.shards)).observe(call.seconds)

    def record_answers(self, call: _NodeCall, results: Mapping[int, Retrieved]) -> None:
        """Records the results of some shards of a call that has ended.

        The latency is recorded for the first shard only. If it ejects the replica of this shard,
        the replicas of the other shards on the node are ejected, too.
        """
        for shard, result in results.items():
            call.unrecorded.discard(shard)
            self.shards[shard].record_joint_result(call.address, result)
        first = call.shards[0].shard
        if first not in results or call.relative_latency is None:
            return
        if self.shards[first].record_latency(call.address, call.relative_latency):
            for shard in results.keys() - {first}:
                self.shards[shard].record_outcome(call.address, ReplicaOutcome.OUTLIER)

    def record_cancelled(self, call: _NodeCall) -> None:
        """Records the outcome of a call that is being cancelled, for its unrecorded shards."""
        elapsed = call.deadline.clock() - call.sent_at
        outcome = outcome_of(None, elapsed, call.overdue_after)
        for shard in call.unrecorded:
            self.shards[shard].record_outcome(call.address, outcome)


class QuestionRetrieval:
    """The planned calls of one question's retrieval. Leaving the context cancels running calls."""

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
        """The shards that must be called alone, by `call_alone`."""
        self._calls: list[_NodeCall] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for call in self._calls:
            if not call.task.done():
                self._owner.record_cancelled(call)
                call.task.cancel()

    def calls(self) -> dict[Shards, SendJoint[Retrieved]]:
        """Returns the functions that send the joint calls, by the shards of each call."""
        return {
            tuple(each.shard for each in shards): partial(self._call_node, address, shards)
            for address, shards in self._parts
        }

    async def call_alone(self, requested: RequestedShard) -> PartialResult[Retrieved]:
        """Retrieves from one shard, with its own hedge and retry."""
        searcher = self._owner.shards[requested.shard]
        depth = replace(self._depth, after=requested.after)
        found = await searcher.retrieve(self._question, depth, self._deadline)
        return PartialResult({requested.shard: found})

    async def _call_node(
        self, address: str, shards: Sequence[RequestedShard]
    ) -> PartialResult[Retrieved]:
        call = self._owner.send_call(address, shards, self._question, self._depth, self._deadline)
        self._calls.append(call)
        return await self._await_call(call, shards)

    async def _await_call(
        self, call: _NodeCall, shards: Sequence[RequestedShard], may_hedge: bool = True
    ) -> PartialResult[Retrieved]:
        """Awaits the call for some of its shards.

        Shards that are given up continue alone. If `may_hedge` is set and the call is late, shards
        with another replica continue alone, too.
        """
        await call.wait([each.shard for each in shards], may_hedge)
        if call.task.done():
            return self._collect(call, shards)
        if given_up := [each for each in shards if each.shard in call.given_up_shards]:
            alone = given_up
        else:
            may_hedge = False
            replicas = self._owner.shards
            alone = [each for each in shards if replicas[each.shard].has_other(call.address)]
        others = [each for each in shards if each not in alone]
        if not alone:
            return await self._await_call(call, others, may_hedge)
        further = self._continue_alone(call, alone)
        if others:
            numbers = tuple(each.shard for each in others)
            further[numbers] = partial(self._await_call, call, others, may_hedge)
        return PartialResult({}, further)

    def _collect(
        self, call: _NodeCall, shards: Sequence[RequestedShard]
    ) -> PartialResult[Retrieved]:
        """Returns the results of an ended call for some of its shards. Failed shards continue
        alone.
        """
        every, failed = call.results(), []
        results: dict[int, Retrieved] = {}
        for each in shards:
            if isinstance(result := every[each.shard], Retrieved):
                results[each.shard] = result
            else:
                failed.append(each)
        self._owner.record_answers(call, results)
        return PartialResult(results, self._continue_alone(call, failed))

    def _continue_alone(
        self, call: _NodeCall, shards: Sequence[RequestedShard]
    ) -> dict[Shards, SendJoint[Retrieved]]:
        """Returns a call for each shard alone, whose first attempt is the joint call."""
        call.unrecorded.difference_update(each.shard for each in shards)
        return {(each.shard,): partial(self._continue_shard, call, each) for each in shards}

    async def _continue_shard(
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
