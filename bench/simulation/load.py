"""Questions that come, and how long each takes."""

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import simpy

from bench.simulation.front import Answered, Asked, Front
from bench.simulation.machine import Machine

Questions = Iterator[Asked]


def closed_loop(
    env: simpy.Environment,
    front: Front,
    questions: Questions,
    clients: int,
    number: int,
    client: Callable[[], Generator[simpy.Event, Any, None]],
) -> list[Answered]:
    """So many clients, each asking again once it is answered; `number` answers in all.

    `client` is what whoever asks does for each question.
    """
    found: list[Answered] = []
    enough = env.event()

    def one() -> Generator[simpy.Event, Any, None]:
        while len(found) < number:
            began = env.now
            yield from client()
            answered = yield from front.answer(next(questions))
            found.append(Answered(env.now - began, answered.coverage))
        if not enough.triggered:
            enough.succeed()

    for _ in range(clients):
        env.process(one())
    env.run(enough)
    return found


def open_loop(
    env: simpy.Environment,
    front: Front,
    questions: Questions,
    rate: float,
    number: int,
    chance: random.Random,
) -> list[Answered]:
    """Questions come as a Poisson process of `rate` a second, answered or not."""
    found: list[Answered] = []

    def one() -> Generator[simpy.Event, Any, None]:
        found.append((yield from front.answer(next(questions))))

    def come() -> Generator[simpy.Event, Any, None]:
        asked = []
        for _ in range(number):
            yield env.timeout(chance.expovariate(rate))
            asked.append(env.process(one()))
        yield env.all_of(asked)

    env.run(env.process(come()))
    return found


def on_machine(
    env: simpy.Environment, machine: Machine, seconds: float
) -> Callable[[], Generator[simpy.Event, Any, None]]:
    """A client that works on a machine for each question."""

    def client() -> Generator[simpy.Event, Any, None]:
        if seconds:
            yield machine.work(seconds)
        else:
            yield env.timeout(0)

    return client


def made_up(
    chance: random.Random, shards: int, passages: int, lengths: Sequence[int], tokens: int = 12
) -> Questions:
    """Questions without end, of which the passages lie on any shard."""
    while True:
        reads = ((chance.randrange(shards), chance.choice(lengths)) for _ in range(passages))
        yield Asked(tokens, tuple(reads))
