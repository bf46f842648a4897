"""What is done to a cluster in each scenario of faults. Each course leaves rows and marks."""

import asyncio
import contextlib
import json
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import processes
from bench.scenarios.rows import HEALTH, Row
from bench.scenarios.stage import POLL, Stage
from winnow.bundle import default_bundle
from winnow.bundle.manifest import FILE
from winnow.cli.local.processes import Processes
from winnow.client.messages import AnswerClient
from winnow.files.vouching import vouched
from winnow.v1 import answer_pb2

_VICTIM = 0
_NODE = f"node {_VICTIM}"
_SLOWNESS = 10
_OVERLOAD = 4
_CANCELS = 10
LEAST_RESTARTED = 2_000
"""Questions of a rolling restart."""
_BETWEEN_CHECKS = 0.05
"""Seconds between two health checks."""


async def killed(stage: Stage) -> None:
    """Kills a node, and starts it again."""
    async with _lost(stage, signal.SIGKILL):
        await stage.restart(_NODE)
        await stage.until_ready(_VICTIM)


async def stopped(stage: Stage) -> None:
    """Stops a node, and continues it."""
    async with _lost(stage, signal.SIGSTOP):
        stage.send(_VICTIM, signal.SIGCONT)


@contextlib.asynccontextmanager
async def _lost(stage: Stage, number: signal.Signals) -> AsyncIterator[None]:
    """Runs a healthy phase and one without the victim; the caller then brings it back."""
    async with stage.load.at(stage.rate):
        await stage.collect("healthy")
        coverage = stage.asking.reply.coverage
        lost = coverage.shards[_VICTIM].passages
        stage.marks["left"] = 1 - lost / max(coverage.passages_known, 1)
        stage.send(_VICTIM, number)
        # until the first question that was due after the signal has ended
        stage.phase("going")
        since = stage.load.now
        await stage.until(lambda: any(row.at > since for row in stage.load.rows["going"]))
        await stage.collect("without")
        yield
        stage.marks["returned"] = stage.load.now
        await stage.spend("back", max(1.0, 4 / stage.seconds))


async def slow(stage: Stage) -> None:
    """Makes a replica answer ten times as slowly as before."""
    async with stage.load.at(stage.rate):
        await stage.collect("healthy")
        timings = stage.asking.reply.timings
        # an answer takes two calls, one after the other: to retrieve and to read
        calls = (timings.retrieve_ms + timings.read_ms) / 1e3 / 2
        stage.proxy.delay = (_SLOWNESS - 1) * calls
        before = await _calls_and_hedges(stage)
        await stage.collect("slow")
        after = await _calls_and_hedges(stage)
    made, hedges = (now - then for now, then in zip(after, before, strict=True))
    stage.marks["extra load"] = hedges / max(made - hedges, 1.0)


async def overloaded(stage: Stage) -> None:
    """Asks four times the peak rate, beside health checks."""
    async with stage.load.at(stage.marks["peak"] * _OVERLOAD):
        await stage.spend("filling", 0.25)
        before = processes.memory(stage.cluster.processes.pids())
        async with AnswerClient(stage.cluster.address) as client:
            checking = asyncio.create_task(_check_health(stage, client))
            await stage.spend("overload", 3)
            checking.cancel()
            await asyncio.gather(checking, return_exceptions=True)
        after = processes.memory(stage.cluster.processes.pids())
        stage.marks["memory growth"] = after / before - 1


async def cancelled(stage: Stage) -> None:
    """Cancels questions while they are read."""
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
    # a thread takes `threads` times the pace of all; a change is seen by the next poll only
    polling = POLL + 2 * (stage.load.now - began)
    stage.marks["one passage"] = pace * threads + polling


async def restarted(stage: Stage) -> None:
    """Restarts every process, one after the other."""

    async def whole() -> bool:
        return await stage.front("winnow_front_replicas") == len(stage.cluster.nodes)

    async with stage.load.at(stage.rate):
        await stage.spend("healthy")
        stage.phase("restarting")
        for node in range(len(stage.cluster.nodes)):
            stage.say(f"restarting node {node}")
            stage.send(node, signal.SIGTERM)
            await stage.restart(f"node {node}")
            await stage.until_ready(node)
            await stage.until(whole)
        for number in range(len(stage.cluster.fronts)):
            stage.say(f"restarting front {number}")
            await stage.restart_front(number)
        more = LEAST_RESTARTED - len(stage.load.rows["restarting"])
        if stage.seconds >= 10:  # a shorter run only tries the course out
            await asyncio.sleep(max(more, 0) / stage.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A node with an altered copy of a shard, or of the bundle."""

    fault: str
    """What is wrong with it, in words."""
    counted: str
    """The front's metric that counts it."""
    shard: dict[str, Any] | None = None
    """Altered entries of the shard's manifest."""
    score: dict[str, float] | None = None
    """Altered entries of the bundle's score."""

    def node(self, shard: Path, scratch: Path) -> list[str]:
        """Writes the altered copies under `scratch`; returns the arguments of the node."""
        copy, bundle = scratch / "shard", scratch / "bundle"
        shutil.copytree(shard, copy)
        shutil.copytree(default_bundle(), bundle)
        if self.shard:
            _alter(copy / "manifest.json", self.shard)
        if self.score:
            manifest = json.loads((bundle / FILE).read_text(encoding="utf-8"))
            _alter(bundle / FILE, {"score": {**manifest["score"], **self.score}})
        return ["node", "--shard", str(copy), "--bundle", str(bundle)]


def _alter(file: Path, entries: dict[str, Any]) -> None:
    manifest = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(vouched({**manifest, **entries}), encoding="utf-8")


async def joined(stage: Stage, stranger: Stranger) -> None:
    """Starts a node that does not belong to the index, at an address that the front polls."""
    with tempfile.TemporaryDirectory() as scratch, Processes() as others:
        arguments = stranger.node(min(stage.index.glob("shard-*")), Path(scratch))
        async with stage.load.at(stage.rate):
            await stage.spend("healthy")
            stage.phase("joining")
            others.start("stranger", [*arguments, "--listen", stage.stranger])

            async def counted() -> bool:
                return await stage.front(stranger.counted) == 1

            await stage.until(counted)
            await stage.spend("joining")


async def _calls_and_hedges(stage: Stage) -> tuple[float, float]:
    """Calls of questions to content nodes, and how many of them were hedges."""
    name = "winnow_request_seconds_count"
    made = [await stage.nodes(name, method=method) for method in ("Retrieve", "Read", "Search")]
    return sum(made), await stage.front("winnow_front_hedges_total", result="sent")


async def _check_health(stage: Stage, client: AnswerClient) -> None:
    while True:
        at = stage.load.now
        if await client.available():
            stage.load.rows[HEALTH].append(Row(at, stage.load.now - at))
        await asyncio.sleep(_BETWEEN_CHECKS)
