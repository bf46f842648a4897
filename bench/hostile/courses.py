"""What is done to a cluster in each scenario of attacks. Each course leaves rows and marks."""

import asyncio
import contextlib
import signal

from bench.hostile.attacker import attacking
from bench.hostile.attacks.target import Target
from bench.hostile.criteria import CHANGED, LABEL, outcome_metrics
from bench.hostile.witness import answers, holdings, labels
from bench.scenarios.criteria import LEAST_ANSWERS
from bench.scenarios.stage import LONGEST, Stage
from winnow.client.messages import AnswerClient
from winnow.errors import UnavailableError

_MEGABYTE = 1 << 20
_MEMORY = 64 * _MEGABYTE
_DESCRIPTORS = 8
"""Memory and descriptors more than before which count as given back."""
_BACK = 30.0
"""Seconds in which they are given back."""
_HELD = 30.0
"""Seconds of an attack beside which a process ends."""
_SETTLED = 7.0
"""Seconds after which an attack has opened all its connections."""


async def attacked(stage: Stage, name: str) -> None:
    """Runs an attack, with a polite client before it and beside it."""
    before = await answers(stage)
    async with stage.load.at(stage.rate):
        await stage.collect("quiet")
        held = holdings(stage)
        stage.phase("attack")
        # long enough for as many questions as are judged, within bounds
        seconds = max(stage.seconds, LEAST_ANSWERS * 1.05 / stage.rate)
        target = target_of(stage, min(seconds, stage.seconds * LONGEST))

        def growth() -> int:
            for process, code in stage.cluster.ended().items():
                log = stage.cluster.last_log_lines(process)
                raise UnavailableError(f"{process} ended with exit code {code}{log}")
            return holdings(stage).memory - held.memory

        until = stage.load.now + target.seconds
        async with attacking(name, target, growth) as attack:
            stage.marks |= outcome_metrics(await attack.outcomes(target.seconds))
        # a burst is over at once, but not its effect on others
        await asyncio.sleep(max(until - stage.load.now, 0.0))
        stage.phase("after")
    stage.marks["memory at most"] = attack.most_growth / _MEGABYTE
    stage.marks["attacks ended early"] = float(attack.stopped)
    stage.say("waiting for memory and descriptors to be given back")

    def given_back() -> bool:
        now = holdings(stage)
        few = now.descriptors <= held.descriptors + _DESCRIPTORS
        return few and now.memory <= held.memory + _MEMORY

    with contextlib.suppress(TimeoutError):
        await stage.until(given_back, _BACK)
    now = holdings(stage)
    stage.marks["memory kept"] = (now.memory - held.memory) / _MEGABYTE
    stage.marks["descriptors kept"] = now.descriptors - held.descriptors
    await _compare(stage, before)


async def soaked(stage: Stage, minutes: float) -> None:
    """Runs several attacks at a low rate for long, beside a polite client."""
    before = await answers(stage)
    seconds = minutes * 60
    async with stage.load.at(stage.rate):
        stage.phase("settling")
        await asyncio.sleep(min(_SETTLED, seconds / 10))
        async with attacking("mixed", target_of(stage, seconds)) as attack:
            stage.phase("first tenth")
            await asyncio.sleep(seconds / 10)
            held = holdings(stage).memory
            stage.phase("between")
            await asyncio.sleep(seconds * 0.8)
            stage.phase("last tenth")
            stage.marks |= outcome_metrics(await attack.outcomes(seconds / 10))
    stage.marks["memory growth"] = holdings(stage).memory / held - 1
    await _compare(stage, before)


async def left(stage: Stage, name: str) -> None:
    """Ends a front, then a node, by SIGTERM: without an attack, and beside one."""
    for process, address in (
        ("front", stage.cluster.fronts[0]),
        ("node 0", stage.cluster.nodes[0]),
    ):
        stage.phase(f"{process} leaves")
        stage.marks[f"{process}, seconds when quiet"] = await _ends(stage, process)
        target = Target(front=address, node=address, http=stage.cluster.http, seconds=_HELD)
        async with attacking(name, target):
            await asyncio.sleep(_SETTLED)
            stage.marks[f"{process}, seconds while attacked"] = await _ends(stage, process)


def target_of(stage: Stage, seconds: float) -> Target:
    """Returns the first front and the first node as the target of an attack."""
    cluster = stage.cluster
    return Target(
        front=cluster.fronts[0], node=cluster.nodes[0], http=cluster.http, seconds=seconds
    )


async def _ends(stage: Stage, process: str) -> float:
    """Ends a process and starts it again; returns the seconds that it took to end."""
    began = stage.load.now
    stage.cluster.processes.send(process, signal.SIGTERM)
    await asyncio.to_thread(stage.cluster.processes.wait, process)
    took = stage.load.now - began
    stage.cluster.processes.again(process)
    await stage.until_ready(0)
    async with AnswerClient(stage.cluster.address) as client:
        await stage.until(client.available)
    return took


async def _compare(stage: Stage, before: dict[str, bytes]) -> None:
    """Marks the answers that changed, and unknown labels."""
    stage.say("comparing the answers with those before")
    now = await answers(stage)
    stage.marks |= {CHANGED + each: 1.0 for each in before if before[each] != now[each]}
    stage.marks |= {LABEL + each: 1.0 for each in await labels(stage)}
