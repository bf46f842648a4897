"""Runs the plan of a seed, and returns what happened."""

import asyncio
import contextlib
import gc
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simulation import addresses, clock, fault_points, fixtures, logs, randomness
from simulation.clients import Clients
from simulation.cluster import Cluster, SimulatedNode
from simulation.disk import DISKS
from simulation.faults import Faults, KilledError
from simulation.history import AppliedWrite, History
from simulation.indexes import Indexes
from simulation.journal_client import SimulatedNats
from simulation.loop import SimulatedLoop, StoppedEarlyError
from simulation.observing import applied, observed_appends
from simulation.plan import Plan, Step, StepKind
from simulation.process import current_process
from simulation.recovery import Recovery
from simulation.shared_files import UNREADABLE
from simulation.timeline import Timeline
from winnow.bundle import Bundle
from winnow.domain.catalog import Catalog
from winnow.errors import UnavailableError

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
_TRIED_AGAIN = "shard could not be opened", "writes of the shard were handed over to"
"""Parts of errors of moves that are tried again: a node is down, or a move and a split have met."""
_NEVER_LOGGED = ("inconsistent document frequencies",)
"""Parts of log lines that are a violation at any level."""


@dataclass(slots=True, kw_only=True)
class Result:
    """What happened in a simulation."""

    plan: Plan
    violations: list[str]
    timeline: list[str]
    digest: str
    """The hash of the timeline: equal if two runs are equal."""
    simulated_seconds: float
    processor_seconds: float
    events: int
    messages: int
    calls: int
    failed_calls: int
    faults: Mapping[str, int]
    """Number of faults by kind."""


class Simulation:
    """One run of a plan."""

    def __init__(self, plan: Plan, bundle: Bundle, index: Path, directory: Path) -> None:
        self.plan, shape = plan, plan.shape
        self.loop = SimulatedLoop(randomness.seeded(f"loop {plan.seed}"))  # type: ignore[abstract]
        self.timeline = Timeline(self.loop, directory)
        self.history = History(fixtures.built_texts(shape.passages, shape.tenants))
        self.cluster = Cluster(
            plan,
            bundle,
            index,
            loop=self.loop,
            directory=directory,
            record=self.timeline.record,
            report=self.timeline.report,
            lose_tail=self.lose_tail,
            on_load=self.observe_loaded,
            on_catalog=self.observe_catalog,
        )
        self.indexes = Indexes(self.history, bundle, self.cluster.catalog, shape.shards)
        self.faults = Faults(self.cluster, self.loop, self.timeline.record)
        world = shape, self.cluster, self.history, self.indexes
        self._clients = Clients(*world, self.faults, self.loop, self.timeline)
        self._recovery = Recovery(*world, self._clients, self.loop, self.timeline)

    def record_log(self, level: str, line: str) -> None:
        """Adds a log line to the timeline.

        Only a full disk, or a journal that has lost entries, may cause a line of level `error`, or
        a shard that cannot be opened yet because other nodes do not reply.
        """
        process = current_process()
        is_expected = process.full_disk or bool(self.indexes.present.lost)
        if process.name in UNREADABLE:
            is_expected = is_expected or "cannot be read" in line
        if not self.plan.shape.is_fixed:  # the end is checked
            is_expected = is_expected or any(each in line for each in _TRIED_AGAIN)
        if (level == "error" and not is_expected) or any(each in line for each in _NEVER_LOGGED):
            self.timeline.report(line)
        else:
            self.timeline.record(line)

    def observe(self, index_id: str, shard: int, node: str, writes: list[AppliedWrite]) -> None:
        """Checks what the log of a node holds now."""
        checker = self.indexes.of_id(index_id)
        self.timeline.report_all(checker.append(shard, node, writes, self.loop.time()))

    def lose_tail(self, shard: int) -> None:
        """Notes that the journal of a shard has lost acknowledged entries."""
        self.indexes.present.lost.add(shard)

    def observe_catalog(self, catalog: Catalog) -> None:
        """Checks a version of the catalog that a command has written."""
        self.timeline.report_all(self.indexes.observe(catalog, self.loop.time()))

    def observe_loaded(self, node: SimulatedNode) -> None:
        """Observes writes that a node finds in its log, although their commit has failed."""
        assert node.running is not None
        for name, checker in self.indexes.all.items():
            index_id = self.indexes.id_of(name)
            for shard in (
                node.shards if self.plan.shape.is_fixed else node.running.numbers(index_id)
            ):
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
        for context in self.loop.errors:
            error = context.get("exception")
            if not isinstance(error, KilledError):
                self.timeline.report(f"unhandled: {context.get('message')} {error!r}")
        errors = [call.error for call in self.history.writes]
        errors += [call.error for call in self.history.questions]
        return Result(
            plan=self.plan,
            violations=self.timeline.violations,
            timeline=self.timeline.lines,
            digest=self.timeline.digest,
            simulated_seconds=self.loop.time(),
            processor_seconds=clock.processor_seconds() - began,
            events=self.loop.events,
            messages=self.cluster.network.messages,
            calls=len(errors),
            failed_calls=sum(map(bool, errors)),
            faults=dict(self.faults.counts),
        )

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
        self.timeline.record("all faults have ended")
        await asyncio.sleep(_SETTLE_SECONDS)
        for _ in range(_MOVE_WAITS):
            if not self.plan.shape.is_assigned or self._recovery.has_moved_all():
                break
            await asyncio.sleep(_SETTLE_SECONDS)
        if self.plan.shape.is_named:
            await self._finish_copy()
        await self._recovery.check()

    async def _finish_copy(self) -> None:
        """Ends all commands; then rebuilds and switches once more, which must succeed."""
        terminals = self.cluster.terminals
        for name in terminals.all:
            terminals.restart(name)
        await self._wait_for_commands()
        if len(self.indexes.all) > 1:
            before = self.indexes.present.index
            (name, *_) = terminals.all
            terminals.enter(name, StepKind.REBUILD)
            terminals.enter(name, StepKind.SWITCH)
            await self._wait_for_commands()
            if self.indexes.present.index == before:
                self.timeline.report(f"the alias still stands for {before} at the end")
        await asyncio.sleep(_SWITCHED_SECONDS)

    async def _wait_for_commands(self) -> None:
        for _ in range(_COMMAND_SECONDS):
            if self.cluster.terminals.are_idle:
                return
            await asyncio.sleep(1.0)
        self.timeline.report(f"commands have not ended after {_COMMAND_SECONDS} s without a fault")

    async def _run_step(self, step: Step) -> None:
        match step.kind:
            case StepKind.PUT | StepKind.DELETE:
                await self._clients.write(step)
            case StepKind.ASK:
                await self._clients.ask(step)
            case StepKind.REBUILD | StepKind.SWITCH | StepKind.KEEP_ALIAS:
                self.faults.counts[step.kind.value] += 1
                self.cluster.terminals.enter(step.target, step.kind)
            case _:
                if step.kind is StepKind.KILL and step.target in self.cluster.fronts:
                    self._clients.forget(step.target)
                await self.faults.inject(step)


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
