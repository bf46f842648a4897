"""A front node, and the life of a question; a middle node that stands for some of its shards."""

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import simpy

from bench.simulation.costs import Costs
from bench.simulation.fanning import Fan, Gathered
from bench.simulation.machine import Machine
from bench.simulation.node import Ask, Steps, doing
from bench.simulation.queues import Threads
from bench.simulation.shard import Shard
from winnow.deadline import Deadline
from winnow.stateless.policy.waiting import WaitingSettings, of_step

DEADLINE = 2.0
"""Seconds, as a front has it for questions that name none."""
_RETRIEVE_SHARE = 0.4
_PATIENT = WaitingSettings()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its length, and the passages that are read for it."""

    tokens: int
    reads: tuple[tuple[int, int], ...]
    """Of each passage the shard and the length of the reader's input."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How a question was answered."""

    seconds: float
    coverage: float
    """Shards that retrieved, as a share of all."""


class Front:
    """Answers questions."""

    def __init__(
        self,
        env: simpy.Environment,
        machine: Machine,
        threads: int,
        shards: Callable[[Threads], Sequence[Shard]],
        costs: Costs,
        waiting: WaitingSettings = _PATIENT,
    ) -> None:
        """`threads` encode; `shards` are made for its event loop."""
        self._env, self._costs, self._waiting = env, costs, waiting
        self._loop = Threads(env, machine, 1)
        self._encoders = Threads(env, machine, threads)
        self._fan = Fan(env, self._loop, shards(self._loop), costs)

    def answer(self, asked: Asked) -> Generator[simpy.Event, Any, Answered]:
        """Answers one question."""
        env, own = self._env, self._costs.front.question_ms / 2e3
        began = env.now
        deadline = Deadline.after(DEADLINE, lambda: float(env.now))
        yield from doing([self._loop.do(own)])
        yield from doing([self._encoders.do(self._costs.encode(asked.tokens))])
        found = yield from self._retrieve(deadline)
        yield from self._read(asked, deadline, found.asked - found.answered)
        yield from doing([self._loop.do(own)])
        return Answered(env.now - began, found.answered / found.asked)

    def _retrieve(self, deadline: Deadline) -> Generator[simpy.Event, Any, Gathered]:
        every = len(self._fan.shards)
        until = deadline.earlier(deadline.left() * (1 - _RETRIEVE_SHARE))
        settings = of_step(self._waiting, every, every, 0)
        return (yield from self._fan.gather(dict.fromkeys(range(every), Ask()), settings, until))

    def _read(self, asked: Asked, deadline: Deadline, failed: int) -> Steps:
        wanted: dict[int, list[int]] = {}
        for shard, tokens in asked.reads:
            wanted.setdefault(shard, []).append(tokens)
        asks = {shard: Ask(tuple(tokens)) for shard, tokens in wanted.items()}
        settings = of_step(self._waiting, len(self._fan.shards), len(asks), failed)
        yield from self._fan.gather(asks, settings, deadline)


class MiddleNode:
    """Asks some shards for a front: to the front it is one shard, and answers as one."""

    def __init__(
        self,
        env: simpy.Environment,
        machine: Machine,
        shards: Sequence[Shard],
        costs: Costs,
        chance: random.Random,
        waiting: WaitingSettings = _PATIENT,
    ) -> None:
        self._env, self._costs, self._chance, self._waiting = env, costs, chance, waiting
        self._loop = Threads(env, machine, 1)
        self._fan = Fan(env, self._loop, shards, costs)

    def retrieve(self) -> Steps:
        """All of its shards retrieve; the best of theirs are its own."""
        every = len(self._fan.shards)
        yield from self._around(dict.fromkeys(range(every), Ask()))

    def read(self, tokens: Sequence[int]) -> Steps:
        """Passages are read where they lie: on any of its shards."""
        wanted: dict[int, list[int]] = {}
        for each in tokens:
            wanted.setdefault(self._chance.randrange(len(self._fan.shards)), []).append(each)
        yield from self._around({shard: Ask(tuple(own)) for shard, own in wanted.items()})

    def _around(self, asks: dict[int, Ask]) -> Steps:
        deadline = Deadline.after(DEADLINE, lambda: float(self._env.now))
        yield from doing([self._loop.do(self._costs.call / 2)])
        yield from self._fan.gather(asks, self._waiting, deadline)
        yield from doing([self._loop.do(self._costs.call / 2)])
