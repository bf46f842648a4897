"""A content node: an event loop, threads that retrieve, threads that read."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import simpy

from bench.simulation.costs import Costs
from bench.simulation.machine import Machine
from bench.simulation.queues import Task, Threads

Steps = Generator[simpy.Event, Any, None]


class Answering(Protocol):
    """What can be asked as a shard: a content node, or whatever stands for several."""

    def retrieve(self) -> Steps:
        """Answers a call that retrieves."""

    def read(self, tokens: Sequence[int]) -> Steps:
        """Answers a call that reads passages of these lengths."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A call to a shard."""

    tokens: tuple[int, ...] | None = None
    """Lengths of the passages to read; None to retrieve."""

    @property
    def kind(self) -> str:
        """As policies know it."""
        return "retrieve" if self.tokens is None else "read"

    @property
    def passages(self) -> int:
        """To be read."""
        return len(self.tokens or ())

    def of(self, node: Answering) -> Steps:
        """The same of one node."""
        return node.retrieve() if self.tokens is None else node.read(self.tokens)


class ContentNode:
    """Serves one shard."""

    def __init__(
        self,
        env: simpy.Environment,
        costs: Costs,
        machine: Machine,
        threads: int,
        slowness: float = 1.0,
    ) -> None:
        """`slowness`: how many times as long as usual all that it does takes."""
        self._env, self._costs, self._slowness = env, costs, slowness
        self._loop = Threads(env, machine, 1)
        self._brief = Threads(env, machine, threads)
        self._readers = Threads(env, machine, threads, gentle=True)

    def retrieve(self) -> Steps:
        """Answers a call that retrieves."""
        yield from self._around(self._brief, [self._costs.retrieve()])

    def read(self, tokens: Sequence[int]) -> Steps:
        """Answers a call that reads passages of these lengths."""
        work = [self._costs.read(each) for each in tokens]
        # the question's own half is computed by whoever reads first
        work[0] += self._costs.half()
        yield from self._around(self._readers, work)

    def _around(self, pool: Threads, work: Sequence[float]) -> Steps:
        costs, slow = self._costs, self._slowness
        yield from doing([self._loop.do(costs.call / 2 * slow)])
        if pause := costs.pause():
            yield self._env.timeout(pause)
        yield from doing([pool.do(each * slow) for each in work])
        yield from doing([self._loop.do(costs.call / 2 * slow)])


def doing(tasks: Sequence[Task]) -> Steps:
    """Waits for tasks; takes them back if whoever waits is interrupted."""
    try:
        for task in tasks:
            if not task.processed:
                yield task
    except simpy.Interrupt:
        for task in tasks:
            task.cancel()
        raise
