"""A simulated network delivers what a killed process had sent, unless a reset discards it."""

import asyncio
from functools import partial
from random import Random

from simulation.loop import SimulatedLoop
from simulation.network import Message, Network
from simulation.process import Process

_SENT = 6


def arrived(seed: int, *, sent_after_kill: bool = False) -> list[int]:
    """Returns the messages of a killed process that arrive, and -1 for the end of its connection."""
    loop = SimulatedLoop(Random(seed))  # type: ignore[abstract]
    network = Network(loop, Random(seed), lambda _: None)
    source, target = Process("source"), Process("target")
    seen: list[int] = []

    def message(number: int, *, ends: bool = False) -> Message:
        return Message(source, target, "", lambda: seen.append(number), lambda: None, ends=ends)

    async def run() -> None:
        if sent_after_kill:
            loop.kill(source)
        for number in range(_SENT):
            network.send(message(number), "connection")
        loop.kill(source)
        network.send(message(-1, ends=True), "connection")
        await asyncio.sleep(10)

    loop.run(run())
    return seen


def test_first_messages_of_a_killed_process_arrive_before_the_end_of_its_connection() -> None:
    lengths = set()
    for seed in range(40):
        *numbers, end = arrived(seed)
        assert (numbers, end) == (list(range(len(numbers))), -1)
        lengths.add(len(numbers))
    assert {0, _SENT} < lengths


def test_a_killed_process_sends_nothing_more() -> None:
    assert arrived(0, sent_after_kill=True) == [-1]


def test_messages_of_a_stopped_process_arrive() -> None:
    loop = SimulatedLoop(Random(1))  # type: ignore[abstract]
    network = Network(loop, Random(1), lambda _: None)
    source, target = Process("source"), Process("target")
    seen: list[int] = []

    async def send() -> None:
        arrive = partial(seen.append, 1)
        network.send(Message(source, target, "", arrive, lambda: None))
        loop.pause(source)

    async def run() -> None:
        loop.start(source, send())
        await asyncio.sleep(10)

    loop.run(run())
    assert seen == [1]
