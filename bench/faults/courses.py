"""What is done to a cluster in each scenario. Each course leaves rows and marks behind."""

import asyncio
import signal
import tempfile
from pathlib import Path

from bench.faults.rows import HEALTH, Row
from bench.faults.stage import LOOK, Stage
from bench.faults.strangers import Stranger
from winnow.cli.local.processes import Processes
from winnow.client.messages import AnswerClient
from winnow.v1 import answer_pb2

_VICTIM = 0
_SLOWNESS = 10
_OVERLOAD = 4
_CANCELS = 10
_LEAST_RESTARTED = 2_000
_BETWEEN_CHECKS = 0.05
"""Seconds."""


async def killed(stage: Stage) -> None:
    """A node dies, and is started again."""
    async with stage.load.at(stage.rate):
        await stage.collect("healthy")
        _left(stage)
        stage.send(_VICTIM, signal.SIGKILL)
        await _gone(stage)
        await stage.collect("without")
        await stage.restart(_VICTIM)
        await stage.until_ready(_VICTIM)
        await _returned(stage)


async def stopped(stage: Stage) -> None:
    """A node hangs, and goes on."""
    async with stage.load.at(stage.rate):
        await stage.collect("healthy")
        _left(stage)
        stage.send(_VICTIM, signal.SIGSTOP)
        await _gone(stage)
        await stage.collect("without")
        stage.send(_VICTIM, signal.SIGCONT)
        await _returned(stage)


async def slow(stage: Stage) -> None:
    """A replica answers ten times as slowly as before."""
    async with stage.load.at(stage.rate):
        await stage.collect("healthy")
        timings = stage.asking.reply.timings
        # an answer takes two calls, one after the other: to retrieve and to read
        calls = (timings.retrieve_ms + timings.read_ms) / 1e3 / 2
        stage.proxy.delay = (_SLOWNESS - 1) * calls
        before = await _calls(stage)
        await stage.collect("slow")
        made, hedges = (now - then for now, then in zip(await _calls(stage), before, strict=True))
    stage.marks["extra load"] = hedges / max(made - hedges, 1.0)


async def overloaded(stage: Stage) -> None:
    """Four times as much is asked as can be answered; beside it, what is no work at all."""
    async with stage.load.at(stage.marks["peak"] * _OVERLOAD):
        await stage.spend("filling", 0.25)
        before = stage.memory()
        async with AnswerClient(stage.cluster.address) as client:
            checking = asyncio.create_task(_check_health(stage, client))
            await stage.spend("overload", 3)
            checking.cancel()
            await asyncio.gather(checking, return_exceptions=True)
        stage.marks["memory growth"] = stage.memory() / before - 1


async def cancelled(stage: Stage) -> None:
    """A client goes away while its question is being read, again and again."""
    nodes = len(stage.cluster.nodes)
    pace = await stage.nodes("winnow_node_seconds_per_read") / nodes
    threads = await stage.nodes("winnow_node_reader_threads") / nodes
    stage.phase("cancelling")
    question = answer_pb2.AnswerRequest(
        question="What is this about?", passages_to_read=100, max_loss=0, fresh=True
    )

    async def busy() -> bool:
        return await stage.nodes("winnow_node_reader_threads_busy") > 0

    async def idle() -> bool:
        return not await busy()

    longest = 0.0
    for _ in range(_CANCELS):
        async with AnswerClient(stage.cluster.address) as client:
            asked = asyncio.create_task(client.ask(question, 60.0))
            await stage.until(busy)
            asked.cancel()
            since = stage.load.now
            await stage.until(idle)
            longest = max(longest, stage.load.now - since)
            await asyncio.gather(asked, return_exceptions=True)
    began = stage.load.now
    await idle()
    stage.marks["busy after a cancel"] = longest
    # each thread takes so many times the pace of all; and what happens right after a look is seen
    # by the next one only
    looking = LOOK + 2 * (stage.load.now - began)
    stage.marks["one passage"] = pace * threads + looking


async def restarted(stage: Stage) -> None:
    """Every process is restarted, one after the other, while questions go on."""
    async with stage.load.at(stage.rate):
        await stage.spend("healthy")
        stage.phase("restarting")
        for node in range(len(stage.cluster.nodes)):
            stage.say(f"restarting node {node}")
            stage.send(node, signal.SIGTERM)
            await stage.restart(node)
            await stage.until_ready(node)
            await _whole(stage)
        for number in range(len(stage.cluster.fronts)):
            stage.say(f"restarting front {number}")
            await stage.restart_front(number)
        more = _LEAST_RESTARTED - len(stage.load.rows["restarting"])
        if stage.seconds >= 10:  # a shorter run is to try the course out
            await asyncio.sleep(max(more, 0) / stage.rate)


async def joined(stage: Stage, stranger: Stranger) -> None:
    """A node that does not belong appears at an address that the front looks at."""
    with tempfile.TemporaryDirectory() as scratch, Processes() as others:
        arguments = stranger.node(next(iter(sorted(stage.index.glob("shard-*")))), Path(scratch))
        async with stage.load.at(stage.rate):
            await stage.spend("healthy")
            stage.phase("joining")
            others.start("stranger", [*arguments, "--listen", stage.stranger])

            async def named() -> bool:
                return await stage.front(stranger.counted) == 1

            await stage.until(named)
            await stage.spend("joining")


async def _calls(stage: Stage) -> tuple[float, float]:
    """Calls that content nodes got from questions, and how many of those were hedges."""
    name = "winnow_request_seconds_count"
    made = [await stage.nodes(name, method=method) for method in ("Retrieve", "Read", "Search")]
    return sum(made), await stage.front("winnow_front_hedges_total", result="sent")


async def _check_health(stage: Stage, client: AnswerClient) -> None:
    while True:
        at = stage.load.now
        if await client.serving():
            stage.load.rows[HEALTH].append(Row(at, stage.load.now - at))
        await asyncio.sleep(_BETWEEN_CHECKS)


def _left(stage: Stage) -> None:
    """Marks what is left of the index without the victim's shard."""
    coverage = stage.asking.reply.coverage
    lost = coverage.shards[0].passages
    stage.marks["left"] = 1 - lost / max(coverage.passages_known, 1)


async def _gone(stage: Stage) -> None:
    """Lets end what was asked before the node was gone."""
    stage.phase("going")
    since = stage.load.now

    def later(rows: list[Row]) -> bool:
        return any(row.at > since for row in rows)

    await stage.until(lambda: later(stage.load.rows["going"]))


async def _returned(stage: Stage) -> None:
    stage.marks["returned"] = stage.load.now
    await stage.spend("back", max(1.0, 4 / stage.seconds))


async def _whole(stage: Stage) -> None:
    """Waits until the front counts every replica again."""

    async def whole() -> bool:
        return await stage.front("winnow_front_replicas") == len(stage.cluster.nodes)

    await stage.until(whole)
