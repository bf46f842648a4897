"""The clients of a cluster: they write and ask, and check each result when they get it."""

from simulation.cluster import Cluster
from simulation.faults import Faults
from simulation.front import RunningFront
from simulation.history import History, QuestionCall, WriteCall
from simulation.indexes import Indexes
from simulation.loop import SimulatedLoop
from simulation.plan import Shape, Step, StepKind
from simulation.timeline import Timeline
from winnow.deadline import Deadline
from winnow.domain.answered import Answered
from winnow.domain.question import AnswerRequest, PartialResults
from winnow.domain.tenant import stored_id
from winnow.domain.write import Deletion, FedPassage, Position, WriteResult
from winnow.errors import InvalidRequestError, WinnowError

_PATIENT_SECONDS = 2.0
"""Seconds in which each question is answered if no fault happens."""
_SLACK = 0.05
"""Seconds after its deadline at which a call is cancelled. It should end by itself before."""
_WAIT_FOR_REPLICA = 1.9
"""Seconds during which a front requires a write even if the replicas that have it fail."""

_Shard = tuple[str, int]
"""A shard, by the name of its index."""


class Clients:
    """All clients, and what was acknowledged to them."""

    def __init__(
        self,
        shape: Shape,
        cluster: Cluster,
        history: History,
        indexes: Indexes,
        faults: Faults,
        loop: SimulatedLoop,
        timeline: Timeline,
    ) -> None:
        self._shape, self._cluster, self._history = shape, cluster, history
        self._indexes, self._faults = indexes, faults
        self._loop, self._timeline = loop, timeline
        self._acknowledged: dict[str, dict[_Shard, list[tuple[float, int]]]] = {}
        """When each write of a shard was acknowledged, by front."""
        self._positions: dict[_Shard, Position] = {}
        """The last acknowledged write in each shard."""

    def forget(self, front: str) -> None:
        """Notes that a front is killed: a new one knows of no write."""
        self._acknowledged.pop(front, None)

    async def write(self, step: Step) -> WriteCall:
        """Puts or deletes a passage; returns the call, which may have failed."""
        call = WriteCall(
            client=step.client,
            front=self._front_of(step.client),
            id=stored_id(step.tenant, step.id),
            text=step.text,
            version=step.version,
            begun=self._loop.time(),
        )
        self._history.writes.append(call)
        self._timeline.record(f"client {step.client} begins: {step}")

        async def work(front: RunningFront) -> list[WriteResult]:
            deadline = Deadline.after(step.timeout)
            if step.kind is StepKind.DELETE:
                deletion = Deletion(step.id, step.version, step.tenant)
                return await front.feed.delete([deletion], deadline)
            fed = FedPassage(
                id=step.id, title="", text=step.text, version=step.version, tenant=step.tenant
            )
            return await front.feed.put([fed], deadline)

        try:
            (written,) = await self._cluster.call(call.front, work, step.timeout + _SLACK)
        except (WinnowError, TimeoutError) as error:
            call.error = repr(error)
            self._check_deadline(step, call.front, error)
        else:
            call.outcome, call.position = written.outcome, written.position
            self._acknowledge(call)
        call.ended = call.settled = self._loop.time()
        if call.error and self._cluster.fronts[call.front].killed_at > call.begun:
            call.settled = call.begun + step.timeout
        ended = call.error or f"{call.outcome} at {call.position}"
        self._timeline.record(f"client {step.client} {step.kind.value} of {step.id} ends: {ended}")
        self._timeline.report_all(self._indexes.check_write(call))
        return call

    async def ask(self, step: Step) -> QuestionCall:
        """Asks a question; returns the call, which may have failed."""
        front = self._front_of(step.client)
        # also those of other fronts, which the front of this client may not know yet
        after = tuple(
            each
            for (index, shard), each in self._positions.items()
            if step.waits_for_writes
            and index == self._indexes.present.index
            and shard not in self._indexes.present.lost
        )
        required = {name: self._required(front, name) for name in self._indexes.all}
        is_calm = self._is_calm(front)
        call = QuestionCall(
            client=step.client,
            front=front,
            tenant=step.tenant,
            text=step.text,
            after=after,
            allows_partial=step.allows_partial,
            required={},
            begun=self._loop.time(),
        )
        self._history.questions.append(call)
        self._timeline.record(f"client {step.client} begins: {step}")
        request = AnswerRequest(
            question=step.text,
            tenant=step.tenant,
            after=after,
            partial_results=PartialResults.ALLOW if step.allows_partial else PartialResults.FORBID,
            index=self._shape.alias,
        )

        async def work(running: RunningFront) -> Answered:
            return await running.answers.answer(request, Deadline.after(step.timeout))

        try:
            answered = await self._cluster.call(front, work, step.timeout + _SLACK)
            call.answered, call.required = answered, required.get(answered.index or "", {})
        except (WinnowError, TimeoutError) as error:
            call.error = repr(error)
            self._check_deadline(step, front, error)
            self._check_failure(step, call, error, was_calm=is_calm)
        call.ended = self._loop.time()
        shown = (
            [answer.reading.passage.id for answer in call.answered.answers] if call.answered else []
        )
        self._timeline.record(f"client {step.client} ask ends: {call.error or shown}")
        follows = is_calm and self._is_calm(front) and self._faults.reads_catalog(front)
        self._timeline.report_all(self._indexes.check_question(call, is_calm=follows))
        return call

    def _front_of(self, client: int) -> str:
        names = list(self._cluster.fronts)
        return names[client % len(names)]

    def _check_deadline(self, step: Step, front: str, error: Exception) -> None:
        """Reports a call that did not end by its deadline, although its front worked."""
        if isinstance(error, TimeoutError) and not self._faults.is_troubled(front):
            self._timeline.report(f"{front} did not end a call by its deadline: {step}")

    def _acknowledge(self, call: WriteCall) -> None:
        position = call.position
        assert position is not None
        shard = position.index, position.shard
        writes = self._acknowledged.setdefault(call.front, {}).setdefault(shard, [])
        # the time of the first acknowledgement counts: later ones may name the same write
        if position.sequence > max((number for _, number in writes), default=0):
            writes.append((self._loop.time(), position.sequence))
        before = self._positions.get(shard, position)
        self._positions[shard] = max(position, before)

    def _required(self, front: str, index: str) -> dict[int, int]:
        """Returns the last write of each shard of an index that a question to a front must see.

        If the replicas that have a write fail, a front answers without it from two seconds after
        its acknowledgement.
        """
        now = self._loop.time()
        required = self._indexes.required(index, self._is_calm(front), now)
        for (own, shard), writes in self._acknowledged.get(front, {}).items():
            if own != index:
                continue
            troubled = not self._is_calm(front, shard)
            required[shard] = max(
                (number for at, number in writes if not troubled or now - at < _WAIT_FOR_REPLICA),
                default=required.get(shard, 0),
            )
        return required

    def _is_calm(self, front: str, shard: int | None = None) -> bool:
        """Whether no fault concerns a front, the journal and the nodes of a shard, or all nodes."""
        nodes = self._shape.nodes()
        names = [
            name
            for name, own in nodes.items()
            if shard is None or not self._shape.is_fixed or shard in own
        ]
        return not any(self._faults.is_troubled(name) for name in (*names, "journal", front))

    def _check_failure(
        self, step: Step, call: QuestionCall, error: Exception, *, was_calm: bool
    ) -> None:
        """Reports a question to a named index that failed, although no fault explains it.

        Commands do not: neither a rebuild, nor a switch, nor a kill of one of them.
        """
        has_switched = isinstance(error, InvalidRequestError) and bool(call.after)
        is_patient = step.timeout >= _PATIENT_SECONDS and not has_switched
        if self._shape.is_named and is_patient and was_calm and self._is_calm(call.front):
            self._timeline.report(f"{call.front} failed without a fault: {step}: {error!r}")
