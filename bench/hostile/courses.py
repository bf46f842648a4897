"""What is done to a cluster in each scenario. Each course leaves rows and marks behind."""

import asyncio
import contextlib
import signal
from collections.abc import Sequence

from bench.faults.judge import LEAST_ANSWERS
from bench.faults.stage import Stage
from bench.hostile.attacking import attacking
from bench.hostile.judge import CHANGED, LABEL, OUTCOME
from bench.hostile.witness import answers, holdings, labels
from winnow.client.messages import AnswerClient
from winnow.errors import UnavailableError

_LONGEST = 4
"""Times a phase's seconds that an attack lasts at most, so that a p99 can be judged."""
_MEGABYTE = 1 << 20
_NEAR = 8
"""Descriptors more than before, which connections between the processes may come to."""
_MEMORY = 64 * _MEGABYTE
_BACK = 30.0
"""Seconds in which descriptors and memory are back."""
_HELD = 30.0
"""Seconds that a server that leaves is held up at most."""
_SETTLED = 7.0
"""Seconds after which all that an attack holds is open."""


async def attacked(stage: Stage, questions: Sequence[str], name: str) -> None:
    """An attack, with a polite client before it and beside it."""
    before = await answers(stage, questions)
    async with stage.load.at(stage.rate):
        await stage.collect("quiet")
        held = holdings(stage)
        stage.phase("attack")
        lasts = _lasts(stage)
        targets = _targets(stage)

        def grown() -> int:
            for process, code in stage.cluster.ended().items():
                said = stage.cluster.last_words(process)
                raise UnavailableError(f"{process} ended with exit code {code}{said}")
            return holdings(stage).memory - held.memory

        until = stage.load.now + lasts
        async with attacking(name, *targets, lasts, grown) as attack:
            outcomes = await attack.outcomes(lasts)
        # a burst is over at once, what it does to others is not
        await asyncio.sleep(max(until - stage.load.now, 0.0))
        stage.phase("after")
    stage.marks |= {OUTCOME + outcome: float(count) for outcome, count in outcomes.items()}
    stage.marks["memory at most"] = attack.most / _MEGABYTE
    stage.marks["attacks ended early"] = float(attack.stopped)
    stage.say("waiting until all is as before")
    with contextlib.suppress(TimeoutError):
        await stage.until(lambda: _back(stage, held.memory, held.descriptors), _BACK)
    now = holdings(stage)
    stage.marks["memory kept"] = (now.memory - held.memory) / _MEGABYTE
    stage.marks["descriptors kept"] = now.descriptors - held.descriptors
    await _witness(stage, questions, before)


async def soaked(stage: Stage, questions: Sequence[str], minutes: float) -> None:
    """A little of several attacks for long, beside a polite client."""
    before = await answers(stage, questions)
    seconds = minutes * 60
    async with stage.load.at(stage.rate):
        stage.phase("settling")
        await asyncio.sleep(min(_SETTLED, seconds / 10))
        async with attacking("mixed", *_targets(stage), seconds, lambda: 0) as attack:
            stage.phase("first tenth")
            await asyncio.sleep(seconds / 10)
            held = holdings(stage).memory
            stage.phase("between")
            await asyncio.sleep(seconds * 0.8)
            stage.phase("last tenth")
            outcomes = await attack.outcomes(seconds / 10)
    stage.marks |= {OUTCOME + outcome: float(count) for outcome, count in outcomes.items()}
    stage.marks["memory growth"] = holdings(stage).memory / held - 1
    await _witness(stage, questions, before)


async def left(stage: Stage, _: Sequence[str], name: str) -> None:
    """A front, then a node, is told to end: with nobody about, and beside an attack."""
    for process, address in (
        ("front", stage.cluster.fronts[0]),
        ("node 0", stage.cluster.nodes[0]),
    ):
        stage.phase(f"{process} leaves")
        stage.marks[f"{process}, seconds when quiet"] = await _ends(stage, process)
        async with attacking(name, address, address, stage.cluster.http, _HELD, lambda: 0):
            await asyncio.sleep(_SETTLED)
            stage.marks[f"{process}, seconds while attacked"] = await _ends(stage, process)


def _targets(stage: Stage) -> tuple[str, str, str]:
    """The front, a node, and the HTTP of the front."""
    return stage.cluster.fronts[0], stage.cluster.nodes[0], stage.cluster.http


async def _ends(stage: Stage, process: str) -> float:
    """Seconds that a process takes to end; it is started again."""
    began = stage.load.now
    stage.cluster.processes.send(process, signal.SIGTERM)
    await asyncio.to_thread(stage.cluster.processes.wait, process)
    took = stage.load.now - began
    stage.cluster.processes.again(process)
    await stage.until_ready(0)
    async with AnswerClient(stage.cluster.address) as client:
        await stage.until(client.serving)
    return took


def _lasts(stage: Stage) -> float:
    """Seconds of an attack in which as many questions are asked as are judged."""
    return min(max(stage.seconds, LEAST_ANSWERS * 1.05 / stage.rate), stage.seconds * _LONGEST)


def _back(stage: Stage, memory: int, descriptors: int) -> bool:
    now = holdings(stage)
    return now.memory <= memory + _MEMORY and now.descriptors <= descriptors + _NEAR


async def _witness(stage: Stage, questions: Sequence[str], before: dict[str, bytes]) -> None:
    stage.say("asking what was asked before")
    now = await answers(stage, questions)
    stage.marks |= {CHANGED + each: 1.0 for each in before if before[each] != now[each]}
    stage.marks |= {LABEL + each: 1.0 for each in await labels(stage)}
