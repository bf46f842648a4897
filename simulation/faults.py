"""Brings the faults of a plan about, and ends them."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable

from simulation.cluster import Cluster
from simulation.loop import SimulatedLoop
from simulation.plan import MOVES, Step, StepKind
from simulation.process import OUTSIDE, current_process
from simulation.shared_files import UNREADABLE

_AFTERMATH = 10.0
"""Seconds after a fault during which its effects last."""
_WAIT_FOR_POINT = 12.0
"""Seconds until a kill at a fault point is given up."""
_WAIT_FOR_LEAVING = 10.0
"""Seconds until a node that shuts down is killed."""
_AT_POINTS = frozenset([StepKind.KILL_AT, StepKind.POWER_LOSS_AT])
Handler = Callable[[Step], Awaitable[None]]


class KilledError(BaseException):
    """Ends the running work of a process that was killed in the middle of it."""


class Faults:
    """The faults of a cluster, those that last and those that are over."""

    def __init__(
        self, cluster: Cluster, loop: SimulatedLoop, record: Callable[[str], None]
    ) -> None:
        self._cluster, self._loop, self._record = cluster, loop, record
        self.counts = Counter[str]()
        """Number of faults by kind, without kills at points that were not reached."""
        self._running = Counter[str]()
        """Number of running faults of a process, by its name."""
        self._troubled_until: dict[str, float] = {}
        """Until when an ended fault may affect a process, by its name."""
        self._awaited_points: dict[str, tuple[Step, asyncio.Future[None]]] = {}
        """The step that kills a node at a fault point, by the name of the node."""
        self._handlers: dict[StepKind, Handler] = {
            StepKind.KILL: self._kill,
            StepKind.POWER_LOSS: self._kill,
            StepKind.KILL_AT: self._kill_at,
            StepKind.POWER_LOSS_AT: self._kill_at,
            StepKind.LEAVE: self._leave,
            StepKind.PAUSE: self._pause,
            StepKind.CUT: self._cut,
            StepKind.BREAK: self._break,
            StepKind.SLOW_NETWORK: self._slow_network,
            StepKind.SLOW_WORK: self._slow_work,
            StepKind.FULL_DISK: self._fill_disk,
            StepKind.CLOCK_JUMP: self._set_clock,
            StepKind.JOURNAL_FULL: self._fill_journal,
            StepKind.UNREADABLE: self._hide_catalog,
            StepKind.SNAPSHOT: self._take_snapshot,
            StepKind.MOVE: self._move,
            StepKind.SPLIT: self._split,
        }

    async def inject(self, step: Step) -> None:
        """Brings a fault about; returns once it has ended."""
        self._record(f"fault: {step}")
        if step.kind not in _AT_POINTS:  # a point may never be reached
            self.counts[step.kind.value] += 1
        names = [step.target, *([step.other] if step.other else [])]
        if step.kind is StepKind.UNREADABLE:  # the last version stays, so no question fails
            names = [_catalog_of(step.target)]
        if step.kind is StepKind.SNAPSHOT or step.kind in MOVES:
            names = []
        self._running.update(names)
        await self._handlers[step.kind](step)
        self._running.subtract(names)
        self._troubled_until |= dict.fromkeys(names, self._loop.time() + _AFTERMATH)

    def is_troubled(self, name: str) -> bool:
        """Whether a fault may still affect a process."""
        ends = self._troubled_until.get(name, 0.0)
        return self._running[name] > 0 or ends > self._loop.time()

    def reads_catalog(self, name: str) -> bool:
        """Whether a process has been able to read the catalog for a while."""
        return not self.is_troubled(_catalog_of(name))

    def reach(self, point: str) -> None:
        """Kills the current process if a step has chosen this fault point for it."""
        process = current_process()
        step, reached = self._awaited_points.get(process.name, (None, None))
        if step is None or reached is None or reached.done() or not process.alive:
            return
        if step.point != point:
            return
        self._record(f"{process.name}  reaches {point}")
        self.counts[step.kind.value] += 1
        self._cluster.kill(process.name, power_loss=step.kind is StepKind.POWER_LOSS_AT)
        self._loop.run_in(OUTSIDE, reached.set_result, None)
        raise KilledError

    async def _kill(self, step: Step) -> None:
        self._cluster.kill(step.target, power_loss=step.kind is StepKind.POWER_LOSS)
        await asyncio.sleep(step.seconds)
        self._cluster.restart(step.target)

    async def _kill_at(self, step: Step) -> None:
        reached = self._loop.create_future()
        self._awaited_points[step.target] = step, reached
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_FOR_POINT):
                await reached
            await asyncio.sleep(step.seconds)
        self._awaited_points.pop(step.target, None)
        self._cluster.restart(step.target)

    async def _leave(self, step: Step) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_FOR_LEAVING):
                await self._cluster.leave(step.target)
        self._cluster.kill(step.target)
        await asyncio.sleep(step.seconds)
        self._cluster.restart(step.target)

    async def _pause(self, step: Step) -> None:
        process = self._cluster.process(step.target)
        self._loop.pause(process)
        await asyncio.sleep(step.seconds)
        self._loop.resume(process)

    async def _cut(self, step: Step) -> None:
        self._cluster.network.cut.add((step.target, step.other))
        await asyncio.sleep(step.seconds)
        self._cluster.network.heal()

    async def _break(self, step: Step) -> None:
        stalled = self._cluster.network.stall(step.target, step.other)
        await asyncio.sleep(step.amount)
        self._cluster.break_connections(step.target, step.other)
        await asyncio.sleep(step.seconds)
        self._cluster.network.release(stalled)

    async def _slow_network(self, step: Step) -> None:
        self._cluster.network.slow[step.target] = step.amount
        await asyncio.sleep(step.seconds)
        self._cluster.network.slow.pop(step.target, None)

    async def _slow_work(self, step: Step) -> None:
        process = self._cluster.process(step.target)
        process.slowness = step.amount
        await asyncio.sleep(step.seconds)
        process.slowness = 1.0

    async def _fill_disk(self, step: Step) -> None:
        process = self._cluster.process(step.target)
        process.full_disk = True
        await asyncio.sleep(step.seconds)
        process.full_disk = False

    async def _set_clock(self, step: Step) -> None:
        self._cluster.process(step.target).wall_offset = step.amount

    async def _fill_journal(self, step: Step) -> None:
        self._cluster.journal.model.full = True
        await asyncio.sleep(step.seconds)
        self._cluster.journal.model.full = False

    async def _hide_catalog(self, step: Step) -> None:
        UNREADABLE.add(step.target)
        await asyncio.sleep(step.seconds)
        UNREADABLE.discard(step.target)

    async def _take_snapshot(self, step: Step) -> None:
        self._cluster.take_snapshot(step.target)

    async def _move(self, step: Step) -> None:
        self._cluster.move(step.number, step.other)

    async def _split(self, step: Step) -> None:
        self._cluster.split(step.number)


def _catalog_of(name: str) -> str:
    """Returns the name under which a process is troubled because it cannot read the catalog."""
    return f"catalog of {name}"
