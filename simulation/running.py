"""Runs the plan of a seed, and returns what happened."""

import asyncio
import contextlib
import gc
import hashlib
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from simulation import (
    addresses,
    clock,
    fault_points,
    fixtures,
    growth,
    logs,
    randomness,
    resources,
    snapshots,
)
from simulation.checking import Checker
from simulation.cluster import Cluster, SimulatedNode
from simulation.disk import DISKS
from simulation.faults import Faults, KilledError
from simulation.front import RunningFront
from simulation.history import AppliedWrite, History, QuestionCall, WriteCall
from simulation.indexes import Indexes
from simulation.journal_client import SimulatedNats
from simulation.loop import SimulatedLoop, StoppedEarlyError
from simulation.node import RunningNode
from simulation.observing import applied, observed_appends
from simulation.plan import Plan, Step, StepKind
from simulation.process import current_process
from simulation.shared_files import UNREADABLE
from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.answered import Answered
from winnow.domain.catalog import Catalog
from winnow.domain.partition import Partition
from winnow.domain.question import AnswerRequest, PartialResults
from winnow.domain.tenant import stored_id
from winnow.domain.write import Deletion, FedPassage, Position, WriteResult
from winnow.errors import (
    GenerationGoneError,
    InvalidRequestError,
    UnavailableError,
    WinnowError,
)

_STARTED = 5.0
"""Seconds until the first step, in which the cluster starts."""
_FORM_SECONDS = 4.0
"""Further seconds in which fronts open the indexes of a catalog."""
_SETTLE_SECONDS = 25.0
"""Seconds after all faults in which the cluster recovers."""
_MOVE_WAITS = 8
"""How often nodes get the same time again to finish moves. Closing a shard takes 14 seconds, and
parts of a shard are closed one after the other."""
_COMMAND_SECONDS = 200
"""Seconds in which commands end if no fault happens."""
_SWITCHED_SECONDS = 12.0
"""Seconds in which all fronts switch, if no fault happens."""
_POOLS_OF_PARTS = 16
"""Pools of replicas of a front, at most, if shards are split."""
_MANY_CALLS, _MAX_ITEMS = 150, 64
"""Calls from which on tables are checked, and their maximum length. More calls do not matter."""
_TRIED_AGAIN = "shard could not be opened", "writes of the shard were handed over to"
"""Parts of errors of moves that are tried again: a node is down, or a move and a split have met."""
_NEVER_LOGGED = ("inconsistent document frequencies",)
"""Parts of log lines that are a violation at any level."""
_LAST_TIMEOUT = 20.0
_LAST_SECONDS = 5.0
"""Seconds in which replicas apply the last writes."""
_PATIENT_SECONDS = 2.0
"""Seconds in which each question is answered if no fault happens."""
_SLACK = 0.05
"""Seconds after its deadline at which a call is cancelled. It should end by itself before."""
_WAIT_FOR_REPLICA = 1.9
"""Seconds during which a front requires a write even if the replicas that have it fail."""


_Shard = tuple[str, int]
"""A shard, by the name of its index."""


@dataclass(slots=True)
class Result:
    """What happened in a simulation."""

    plan: Plan
    violations: list[str] = field(default_factory=list)
    timeline: list[str] = field(default_factory=list)
    digest: str = ""
    """The hash of the timeline: equal if two runs are equal."""
    simulated_seconds: float = 0.0
    processor_seconds: float = 0.0
    events: int = 0
    messages: int = 0
    calls: int = 0
    failed_calls: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    """Number of faults by kind."""


class Simulation:
    """One run of a plan."""

    def __init__(self, plan: Plan, bundle: Bundle, index: Path, directory: Path) -> None:
        self.plan = plan
        self.result = Result(plan)
        self._digest, self._directory = hashlib.blake2b(digest_size=16), str(directory)
        self.loop = SimulatedLoop(randomness.seeded(f"loop {plan.seed}"))  # type: ignore[abstract]
        self.history = History(fixtures.built_texts(plan.shape.passages, plan.shape.tenants))
        self.cluster = Cluster(
            plan,
            bundle,
            index,
            loop=self.loop,
            directory=directory,
            record=self.record,
            report=self.report,
            lose_tail=self.lose_tail,
            on_load=self.observe_loaded,
            on_catalog=self.observe_catalog,
        )
        self.indexes = Indexes(self.history, bundle, self.cluster.catalog, plan.shape.shards)
        self.faults = Faults(self.cluster, self.loop, self.record)
        self._acknowledged: dict[str, dict[_Shard, list[tuple[float, int]]]] = {}
        """When each write of a shard was acknowledged, by front."""
        self._positions: dict[_Shard, Position] = {}
        """The last acknowledged write in each shard."""

    @property
    def checker(self) -> Checker:
        """The checker of the index to which clients write."""
        return self.indexes.present

    def record(self, line: str) -> None:
        """Adds a line to the timeline."""
        # without the path of this run, so that equal runs have equal timelines
        text = f"{self.loop.time():10.4f}  {line}".replace(self._directory, "")
        self._digest.update(text.encode())
        self.result.timeline.append(text)

    def record_log(self, level: str, line: str) -> None:
        """Adds a log line to the timeline.

        Only a full disk, or a journal that has lost entries, may cause a line of level `error`, or
        a shard that cannot be opened yet because other nodes do not reply.
        """
        process = current_process()
        is_expected = process.full_disk or bool(self.checker.lost)
        if process.name in UNREADABLE:
            is_expected = is_expected or "cannot be read" in line
        if self.plan.shape.is_assigned or self.plan.shape.is_named:  # the end is checked
            is_expected = is_expected or any(each in line for each in _TRIED_AGAIN)
        if (level == "error" and not is_expected) or any(each in line for each in _NEVER_LOGGED):
            self.report(line)
        else:
            self.record(line)

    def report(self, violation: str) -> None:
        """Adds a violation."""
        self.record(f"VIOLATION: {violation}")
        self.result.violations.append(violation)

    def report_all(self, violations: Iterator[str]) -> None:
        for violation in violations:
            self.report(violation)

    def observe(self, index_id: str, shard: int, node: str, writes: list[AppliedWrite]) -> None:
        """Checks what the log of a node holds now."""
        checker = self.indexes.of_id(index_id)
        self.report_all(checker.append(shard, node, writes, self.loop.time()))

    def lose_tail(self, shard: int) -> None:
        """Notes that the journal of a shard has lost acknowledged entries."""
        self.checker.lost.add(shard)

    def observe_catalog(self, catalog: Catalog) -> None:
        """Checks a version of the catalog that a command has written."""
        self.report_all(self.indexes.observe(catalog, self.loop.time()))

    def observe_loaded(self, node: SimulatedNode) -> None:
        """Observes writes that a node finds in its log, although their commit has failed."""
        assert node.running is not None
        is_fixed = not (self.plan.shape.is_assigned or self.plan.shape.is_named)
        for name, checker in self.indexes.all.items():
            index_id = self.indexes.id_of(name)
            for shard in node.shards if is_fixed else node.running.numbers(index_id):
                served = node.running.served(index_id).searcher(shard)
                if served.fault:
                    continue
                try:
                    live = served.transfer.shard
                except UnavailableError:
                    continue  # it is loaded later: its index was found just now
                known = checker.own_writes(shard, node.name)
                if self.plan.shape.is_assigned:  # the shard may have come with its writes
                    known = len(checker.log(shard, live.sequence).writes)
                if live.sequence > known:
                    found = list(map(applied, live.logged_after(known, 1_000)))
                    self.observe(index_id, shard, node.name, found)

    def run(self) -> Result:
        """Runs the plan to its end."""
        began = clock.processor_seconds()
        with contextlib.suppress(StoppedEarlyError):
            self.loop.run(self._main())
        result = self.result
        for context in self.loop.errors:
            error = context.get("exception")
            if isinstance(error, KilledError):
                continue
            self.report(f"unhandled: {context.get('message')} {error!r}")
        result.digest = self._digest.hexdigest()
        result.simulated_seconds = self.loop.time()
        result.processor_seconds = clock.processor_seconds() - began
        result.events, result.messages = self.loop.events, self.cluster.network.messages
        errors = [call.error for call in self.history.writes]
        errors += [call.error for call in self.history.questions]
        result.calls, result.failed_calls = len(errors), sum(map(bool, errors))
        result.faults = dict(self.faults.counts)
        return result

    async def _main(self) -> None:
        self.cluster.start()
        running, started = [], _STARTED + (_FORM_SECONDS if self.plan.shape.is_named else 0.0)
        for step in self.plan.steps:
            await asyncio.sleep(max(step.at + started - self.loop.time(), 0.0))
            running.append(asyncio.ensure_future(self._run_step(step)))
        if running:
            await asyncio.wait(running)
        for task in running:
            task.result()
        self.cluster.network.heal()
        self.record("all faults have ended")
        await asyncio.sleep(_SETTLE_SECONDS)
        for _ in range(_MOVE_WAITS):
            if not self.plan.shape.is_assigned or self._has_moved_all():
                break
            await asyncio.sleep(_SETTLE_SECONDS)
        if self.plan.shape.is_named:
            await self._finish_copy()
        await self._check_end()

    async def _finish_copy(self) -> None:
        """Ends all commands; then rebuilds and switches once more, which must succeed."""
        terminals = self.cluster.terminals
        for name in terminals.all:
            terminals.restart(name)
        await self._wait_for_commands()
        if len(self.indexes.all) > 1:
            before = self.checker.index
            (name, *_) = terminals.all
            terminals.enter(name, StepKind.REBUILD)
            terminals.enter(name, StepKind.SWITCH)
            await self._wait_for_commands()
            if self.checker.index == before:
                self.report(f"the alias still stands for {before} at the end")
        await asyncio.sleep(_SWITCHED_SECONDS)

    async def _wait_for_commands(self) -> None:
        for _ in range(_COMMAND_SECONDS):
            if self.cluster.terminals.are_idle:
                return
            await asyncio.sleep(1.0)
        self.report(f"commands have not ended after {_COMMAND_SECONDS} s without a fault")

    async def _run_step(self, step: Step) -> None:
        match step.kind:
            case StepKind.PUT | StepKind.DELETE:
                await self._write(step)
            case StepKind.ASK:
                await self._ask(step)
            case StepKind.REBUILD | StepKind.SWITCH | StepKind.KEEP_ALIAS:
                self.faults.counts[step.kind.value] += 1
                self.cluster.terminals.enter(step.target, step.kind)
            case _:
                if step.kind is StepKind.KILL and step.target in self.cluster.fronts:
                    self._acknowledged.pop(step.target, None)  # a new front knows of no write
                await self.faults.inject(step)

    def _front_of(self, client: int) -> str:
        names = list(self.cluster.fronts)
        return names[client % len(names)]

    async def _write(self, step: Step) -> WriteCall:
        call = WriteCall(
            client=step.client,
            front=self._front_of(step.client),
            id=stored_id(step.tenant, step.id),
            text=step.text,
            version=step.version,
            begun=self.loop.time(),
        )
        self.history.writes.append(call)
        self.record(f"client {step.client} begins: {step}")

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
            (written,) = await self.cluster.call(call.front, work, step.timeout + _SLACK)
        except (WinnowError, TimeoutError) as error:
            call.error = repr(error)
            self._check_deadline(step, call.front, error)
        else:
            call.outcome, call.position = written.outcome, written.position
            self._acknowledge(call)
        call.ended = call.settled = self.loop.time()
        if call.error and self.cluster.fronts[call.front].killed_at > call.begun:
            call.settled = call.begun + step.timeout
        ended = call.error or f"{call.outcome} at {call.position}"
        self.record(f"client {step.client} {step.kind.value} of {step.id} ends: {ended}")
        self.report_all(self.indexes.check_write(call))
        return call

    def _check_deadline(self, step: Step, front: str, error: Exception) -> None:
        """Reports a call that did not end by its deadline, although its front worked."""
        if isinstance(error, TimeoutError) and not self.faults.is_troubled(front):
            self.report(f"{front} did not end a call by its deadline: {step}")

    def _acknowledge(self, call: WriteCall) -> None:
        position = call.position
        assert position is not None
        shard = position.index, position.shard
        writes = self._acknowledged.setdefault(call.front, {}).setdefault(shard, [])
        # the time of the first acknowledgement counts: later ones may name the same write
        if position.sequence > max((number for _, number in writes), default=0):
            writes.append((self.loop.time(), position.sequence))
        before = self._positions.get(shard, position)
        self._positions[shard] = max(position, before)

    def _required(self, front: str, index: str) -> dict[int, int]:
        """Returns the last write of each shard of an index that a question to a front must see.

        If the replicas that have a write fail, a front answers without it from two seconds after
        its acknowledgement.
        """
        now = self.loop.time()
        required = self.indexes.required(index, self._is_calm(front), now)
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
        nodes = self.plan.shape.nodes()
        is_fixed = not (self.plan.shape.is_assigned or self.plan.shape.is_named)
        names = [
            name for name, own in nodes.items() if shard is None or not is_fixed or shard in own
        ]
        return not any(self.faults.is_troubled(name) for name in (*names, "journal", front))

    async def _ask(self, step: Step) -> QuestionCall:
        front = self._front_of(step.client)
        # also those of other fronts, which the front of this client may not know yet
        after = tuple(
            each
            for (index, shard), each in self._positions.items()
            if step.waits_for_writes
            and index == self.checker.index
            and shard not in self.checker.lost
        )
        required = {name: self._required(front, name) for name in self.indexes.all}
        is_calm = self._is_calm(front)
        call = QuestionCall(
            client=step.client,
            front=front,
            tenant=step.tenant,
            text=step.text,
            after=after,
            allows_partial=step.allows_partial,
            required={},
            begun=self.loop.time(),
        )
        self.history.questions.append(call)
        self.record(f"client {step.client} begins: {step}")
        request = AnswerRequest(
            question=step.text,
            tenant=step.tenant,
            after=after,
            partial_results=PartialResults.ALLOW if step.allows_partial else PartialResults.FORBID,
            index=self.plan.shape.alias,
        )

        async def work(running: RunningFront) -> Answered:
            return await running.answers.answer(request, Deadline.after(step.timeout))

        try:
            answered = await self.cluster.call(front, work, step.timeout + _SLACK)
            call.answered, call.required = answered, required.get(answered.index or "", {})
        except (WinnowError, TimeoutError) as error:
            call.error = repr(error)
            self._check_deadline(step, front, error)
            self._check_failure(step, call, error, was_calm=is_calm)
        call.ended = self.loop.time()
        shown = (
            [answer.reading.passage.id for answer in call.answered.answers] if call.answered else []
        )
        self.record(f"client {step.client} ask ends: {call.error or shown}")
        self.report_all(self.indexes.check_question(call, is_calm=is_calm and self._is_calm(front)))
        return call

    def _check_failure(
        self, step: Step, call: QuestionCall, error: Exception, *, was_calm: bool
    ) -> None:
        """Reports a question to a named index that failed, although no fault explains it.

        Commands do not: neither a rebuild, nor a switch, nor a kill of one of them.
        """
        has_switched = isinstance(error, InvalidRequestError) and bool(call.after)
        is_patient = step.timeout >= _PATIENT_SECONDS and not has_switched
        if self.plan.shape.is_named and is_patient and was_calm and self._is_calm(call.front):
            self.report(f"{call.front} failed without a fault: {step}: {error!r}")

    async def _check_end(self) -> None:
        """Checks that the cluster has recovered: it takes writes, answers, and replicas agree."""
        partition = self._partition()
        for number, name in enumerate(self.cluster.fronts):
            written: set[int] = set()
            for attempt in range(200):
                identifier = f"last-{number}-{attempt}"
                tenant = self.plan.shape.tenant(2 * attempt)
                shard = partition.shard_of(stored_id(tenant, identifier))
                if shard in written:
                    continue
                written.add(shard)
                step = Step(
                    at=0,
                    kind=StepKind.PUT,
                    client=number,
                    tenant=tenant,
                    id=identifier,
                    text=f"w1 {identifier}",
                    timeout=_LAST_TIMEOUT,
                )
                call = await self._write(step)
                if call.error and self._is_served(shard):
                    self.report(f"{name} cannot write to shard {shard} at the end: {call.error}")
                if written == set(partition):
                    break
            asked = await self._ask(
                Step(
                    at=0,
                    kind=StepKind.ASK,
                    client=number,
                    tenant=self.plan.shape.tenant(2 * number),
                    text=f"w1 w2 w{3 + number}",
                    timeout=_LAST_TIMEOUT,
                    waits_for_writes=True,
                )
            )
            if self.checker.lost:
                continue  # a front may still wait for a write that was lost
            if asked.answered is None:
                self.report(f"{name} cannot answer at the end: {asked.error}")
            elif not asked.answered.coverage.complete:
                self.report(f"{name} does not search all shards at the end")
        await asyncio.sleep(_LAST_SECONDS)
        self._check_nodes()
        self._check_resources()
        self.report_all(self.indexes.check_histories(partition))
        self.report_all(self.checker.check_parts())
        await self._restart_all()

    def _partition(self) -> Partition:
        """Returns the shards of the index to which clients write."""
        if not self.plan.shape.is_named:
            return self.cluster.partition
        holders = self.indexes.holders(self.checker.index)
        return Partition(len(holders), holders.keys())

    def _check_resources(self) -> None:
        """Checks that no process has work left, and that fronts have kept their budgets."""
        indexes = len(self.indexes.all)
        for node in self.cluster.nodes.values():
            if node.running is not None:
                tasks = self.loop.tasks_of(node.process)
                self.report_all(
                    resources.check_idle(node.name, node.running.registry, tasks, indexes)
                )
        self._check_growth()
        shape = self.plan.shape
        pools = _POOLS_OF_PARTS if shape.is_assigned else shape.shards
        for front in self.cluster.fronts.values():
            if front.running is not None:
                registry, tasks = front.running.registry, self.loop.tasks_of(front.process)
                self.report_all(resources.check_idle(front.name, registry, tasks, indexes))
                sent = self.cluster.addresses.sent[front.name]
                self.report_all(resources.check_budgets(front.name, registry, sent, pools))

    def _check_growth(self) -> None:
        """Checks after many calls that no process has a table that grows with each call."""
        if len(self.history.writes) + len(self.history.questions) < _MANY_CALLS:
            return
        running = {name: node.running for name, node in self.cluster.nodes.items()}
        fronts = {name: front.running for name, front in self.cluster.fronts.items()}
        for name, process in (*running.items(), *fronts.items()):
            self.report_all(growth.large_tables(process, name, _MAX_ITEMS))

    async def _restart_all(self) -> None:
        """Checks that a kill of all nodes at the end loses nothing."""
        for name in self.cluster.nodes:
            self.cluster.kill(name)
            self.cluster.restart(name)
        await asyncio.sleep(_LAST_SECONDS)
        self._check_nodes()

    def _serving(self, shard: int) -> list[str]:
        """Returns the names of the nodes that serve a shard."""
        return [
            node.name
            for node in self.cluster.nodes.values()
            if shard in node.shards
            and node.running is not None
            and not _fault_of(node.running.served().searcher(shard))
        ]

    def _has_moved_all(self) -> bool:
        """Whether each node has exactly its shards."""
        return all(
            node.running is not None
            and node.running.numbers() == sorted(self.cluster.shards_of(node.name))
            for node in self.cluster.nodes.values()
        )

    def _is_served(self, shard: int) -> bool:
        """Whether a shard must be served: if a journal loses entries, all replicas may stop."""
        return shard not in self.checker.lost or bool(self._serving(shard))

    def _check_nodes(self) -> None:
        for node in self.cluster.nodes.values():
            self._check_node(node)
            self._check_snapshots(node)
        for shard in self.checker.lost:
            self.report_all(self.checker.check_served_logs(shard, self._serving(shard)))

    def _check_snapshots(self, node: SimulatedNode) -> None:
        """Checks that each snapshot that was taken is there, with the passages of its moment."""
        for shard, name, sequence in node.snapshots:
            if shard in self.checker.lost:
                continue
            try:
                found = snapshots.texts_of(node.disk.root, shard, self.plan.shape.shards, name)
            except WinnowError as error:
                self.report(f"snapshot {name} of {node.name} is lost: {error}")
                continue
            if found != self.checker.state(shard, sequence):
                self.report(f"snapshot {name} of {node.name} has other passages than its log")

    def _check_node(self, node: Any) -> None:
        """Checks the state of a node at the end."""
        if node.running is None:
            self.report(f"{node.name} does not run at the end")
            return
        for name, checker in self.indexes.all.items():
            self._check_index_of_node(node.name, node.running, name, checker)

    def _check_index_of_node(
        self, node: str, running: RunningNode, name: str, checker: Checker
    ) -> None:
        """Checks what a node has of an index at the end."""
        index_id = self.indexes.id_of(name)
        holders = self.indexes.holders(name) if name else self.cluster.holders()
        shards = sorted(shard for shard, names in holders.items() if node in names)
        follows = self.plan.shape.is_assigned or self.plan.shape.is_named
        if follows and (found := running.numbers(index_id)) != shards:
            self.report(f"{node} has the shards {found} of {name} at the end, not {shards}")
            return
        for shard in shards:
            served: Any = running.served(index_id).searcher(shard)
            lost = shard in checker.lost
            if fault := _fault_of(served):
                if not lost:
                    self.report(f"{node} does not serve shard {shard} at the end: {fault}")
                continue
            live = served.transfer.shard
            last = len(checker.log(shard).writes)
            if live.sequence != last and not lost:
                self.report(f"{node} has write {live.sequence} of shard {shard}, not {last}")
            expected = checker.own_state(shard, node)
            if self.plan.shape.is_assigned:
                expected = checker.state(shard, live.sequence)
            texts = _texts_of(live.view)
            if texts != expected:
                self.report(
                    f"{node} has other passages in shard {shard} than its log: "
                    f"{sorted(texts.items() ^ expected.items())}"
                )


def _fault_of(served: Any) -> str:
    """Returns why a node does not serve a shard to fronts; empty if it does."""
    return str(served.fault or served._withdrawal_reason)  # noqa: SLF001


def _texts_of(view: Any) -> dict[str, str]:
    """Returns the texts of all live passages of a view, by id."""
    found = {}
    for placed in view.segments:
        for row in range(placed.segment.rows):
            if placed.live_rows is None or placed.live_rows[row]:
                with contextlib.suppress(GenerationGoneError):  # a row that a merge emptied
                    passage = placed.segment.load(row).passage
                    found[passage.id] = passage.text
    return found


@cache
def _freeze_heap() -> None:
    """Makes later collections skip what is there before the first simulation."""
    gc.collect()
    gc.freeze()


def run_plan(plan: Plan) -> Result:
    """Runs a plan."""
    index = fixtures.index(plan.shape.shards, plan.shape.passages, plan.shape.tenants)
    directory = Path(tempfile.mkdtemp(dir=fixtures.directory()))
    _freeze_heap()
    gc.disable()  # the collector would run code of killed processes
    simulation = None
    try:
        simulation = Simulation(plan, fixtures.bundle(), index, directory)
        _install(simulation)
        with observed_appends(simulation.observe):
            return simulation.run()
    finally:
        with _quiet_end():
            if simulation is not None:
                simulation.loop.close()
            _uninstall()
            del simulation
            gc.collect()
        gc.enable()
        shutil.rmtree(directory, ignore_errors=True)


def _install(simulation: Simulation) -> None:
    clock.set_loop(simulation.loop)
    randomness.set_source(randomness.seeded(f"code {simulation.plan.seed}"))
    addresses.set_addresses(simulation.cluster.addresses)
    logs.set_sink(simulation.record_log)
    fault_points.set_hook(simulation.faults.reach)


def _uninstall() -> None:
    clock.set_loop(None)
    randomness.set_source(None)
    logs.set_sink(lambda _level, _line: None)
    fault_points.set_hook(lambda _: None)
    DISKS.all.clear()
    UNREADABLE.clear()
    SimulatedNats.host = None  # it keeps tasks, which would else end in the next simulation


@contextlib.contextmanager
def _quiet_end() -> Iterator[None]:
    """Ignores errors of `finally` blocks, which run when the objects of a simulation are freed."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # coroutines that have not begun
            yield
    finally:
        sys.unraisablehook = hook
