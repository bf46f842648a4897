"""Procedures that cause faults in a cluster.

Each procedure asks questions with `stage.load`, which keeps an outcome for each question. The other
measured values go to `stage.values`.
"""

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
from bench.scenarios.measurements import HEALTH, QuestionOutcome
from bench.scenarios.stage import POLL, Stage
from winnow.bundle.manifest import FILE
from winnow.cli.local.processes import Processes
from winnow.client.messages import AnswerClient
from winnow.files.checksummed_json import to_checksummed_json
from winnow.packaged import default_bundle
from winnow.v1 import answer_pb2

_VICTIM = 0
_NODE = f"node {_VICTIM}"
_SLOWDOWN = 10
_OVERLOAD_FACTOR = 4
_CANCEL_COUNT = 10
MIN_RESTART_QUESTIONS = 2_000
"""Minimum number of questions during a rolling restart."""
_CHECK_INTERVAL = 0.05
"""Seconds between two health checks."""


async def kill_node(stage: Stage) -> None:
    """Kills a content node by SIGKILL, and starts it again."""
    async with _without_node(stage, signal.SIGKILL):
        await stage.restart(_NODE)
        await stage.wait_ready(_VICTIM)


async def stop_node(stage: Stage) -> None:
    """Stops a content node by SIGSTOP, and resumes it by SIGCONT."""
    async with _without_node(stage, signal.SIGSTOP):
        stage.send_signal(_VICTIM, signal.SIGCONT)


@contextlib.asynccontextmanager
async def _without_node(stage: Stage, number: signal.Signals) -> AsyncIterator[None]:
    """Runs a healthy phase, sends a signal to the node, and runs a phase without the node.

    The body of the context must bring the node back. The exit of the context runs a last phase.
    """
    async with stage.load.ask_at_rate(stage.rate):
        await stage.run_until_enough_answers("healthy")
        coverage = stage.asker.reply.coverage
        lost = coverage.shards[_VICTIM].passages
        stage.values["left"] = 1 - lost / max(coverage.passages_known, 1)
        stage.send_signal(_VICTIM, number)
        # this phase ends when the first question that was due after the signal ends
        stage.begin_phase("going")
        signal_time = stage.load.now
        outcomes = stage.load.outcomes["going"]
        await stage.wait_until(lambda: any(outcome.due > signal_time for outcome in outcomes))
        await stage.run_until_enough_answers("without")
        yield
        stage.values["returned"] = stage.load.now
        await stage.run_phase("back", max(1.0, 4 / stage.seconds))


async def slow_down_replica(stage: Stage) -> None:
    """Slows down one replica by a factor of ten."""
    async with stage.load.ask_at_rate(stage.rate):
        await stage.run_until_enough_answers("healthy")
        timings = stage.asker.reply.timings
        # an answer takes two consecutive calls: to retrieve and to read
        call_seconds = (timings.retrieve_ms + timings.read_ms) / 1e3 / 2
        stage.proxy.delay = (_SLOWDOWN - 1) * call_seconds
        before = await _calls_and_hedges(stage)
        await stage.run_until_enough_answers("slow")
        after = await _calls_and_hedges(stage)
    calls, hedges = (now - then for now, then in zip(after, before, strict=True))
    stage.values["extra load"] = hedges / max(calls - hedges, 1.0)


async def overload_front(stage: Stage) -> None:
    """Asks questions at four times the peak rate, while health checks run."""
    async with stage.load.ask_at_rate(stage.values["peak"] * _OVERLOAD_FACTOR):
        await stage.run_phase("filling", 0.25)
        before = processes.resident_bytes(stage.cluster.processes.pids())
        async with AnswerClient(stage.cluster.address) as client:
            health_checks = asyncio.create_task(_check_health(stage, client))
            await stage.run_phase("overload", 3)
            health_checks.cancel()
            await asyncio.gather(health_checks, return_exceptions=True)
        after = processes.resident_bytes(stage.cluster.processes.pids())
        stage.values["memory growth"] = after / before - 1


async def cancel_questions(stage: Stage) -> None:
    """Cancels questions while nodes read their passages; measures when reading stops."""
    nodes = len(stage.cluster.nodes)
    seconds_per_read = await stage.nodes_metric("winnow_node_seconds_per_read") / nodes
    threads = await stage.nodes_metric("winnow_node_reader_threads") / nodes
    stage.begin_phase("cancelling")
    question = answer_pb2.AnswerRequest(
        question="What is this about?", passages_to_read=100, max_loss=0, fresh=True
    )

    async def are_readers_busy() -> bool:
        return await stage.nodes_metric("winnow_node_reader_threads_busy") > 0

    async def are_readers_idle() -> bool:
        return not await are_readers_busy()

    max_busy = 0.0
    for _ in range(_CANCEL_COUNT):
        async with AnswerClient(stage.cluster.address) as client:
            answer = asyncio.create_task(client.ask(question, 60.0))
            await stage.wait_until(are_readers_busy)
            answer.cancel()
            cancelled = stage.load.now
            await stage.wait_until(are_readers_idle)
            max_busy = max(max_busy, stage.load.now - cancelled)
            await asyncio.gather(answer, return_exceptions=True)
    began = stage.load.now
    await are_readers_idle()
    stage.values["busy after a cancel"] = max_busy
    # a passage takes one thread `seconds_per_read * threads`; a change is seen at the next poll
    polling = POLL + 2 * (stage.load.now - began)
    stage.values["one passage"] = seconds_per_read * threads + polling


async def restart_all(stage: Stage) -> None:
    """Restarts every content node and front, one after the other."""

    async def all_known() -> bool:
        return await stage.front_metric("winnow_front_replicas") == len(stage.cluster.nodes)

    async with stage.load.ask_at_rate(stage.rate):
        await stage.run_phase("healthy")
        stage.begin_phase("restarting")
        for node in range(len(stage.cluster.nodes)):
            stage.show_progress(f"restarting node {node}")
            stage.send_signal(node, signal.SIGTERM)
            await stage.restart(f"node {node}")
            await stage.wait_ready(node)
            await stage.wait_until(all_known)
        for number in range(len(stage.cluster.fronts)):
            stage.show_progress(f"restarting front {number}")
            await stage.restart_front(number)
        remaining = MIN_RESTART_QUESTIONS - len(stage.load.outcomes["restarting"])
        if stage.seconds >= 10:  # a shorter run only tests the procedure
            await asyncio.sleep(max(remaining, 0) / stage.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignNode:
    """A content node that does not belong to the index: its shard or bundle is an altered copy."""

    description: str
    """What is foreign about the node, in words."""
    metric: str
    """The front's metric that counts such nodes."""
    manifest_changes: dict[str, Any] | None = None
    """Changed entries of the shard's manifest."""
    score_changes: dict[str, float] | None = None
    """Changed entries of the bundle's score weights."""

    def prepare(self, shard: Path, scratch: Path) -> list[str]:
        """Writes the altered copies to `scratch`; returns the node's command-line arguments."""
        copy, bundle = scratch / "shard", scratch / "bundle"
        shutil.copytree(shard, copy)
        shutil.copytree(default_bundle(), bundle)
        if self.manifest_changes:
            _alter_manifest(copy / "manifest.json", self.manifest_changes)
        if self.score_changes:
            manifest = json.loads((bundle / FILE).read_text(encoding="utf-8"))
            _alter_manifest(bundle / FILE, {"score": {**manifest["score"], **self.score_changes}})
        return ["node", "--shard", str(copy), "--bundle", str(bundle)]


def _alter_manifest(file: Path, entries: dict[str, Any]) -> None:
    manifest = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(to_checksummed_json({**manifest, **entries}), encoding="utf-8")


async def join_foreign_node(stage: Stage, foreign_node: ForeignNode) -> None:
    """Starts a foreign node at an address that the front polls."""
    with tempfile.TemporaryDirectory() as scratch, Processes() as children:
        arguments = foreign_node.prepare(min(stage.index.glob("shard-*")), Path(scratch))
        async with stage.load.ask_at_rate(stage.rate):
            await stage.run_phase("healthy")
            stage.begin_phase("joining")
            children.start("foreign node", [*arguments, "--listen", stage.foreign_address])

            async def is_counted() -> bool:
                return await stage.front_metric(foreign_node.metric) == 1

            await stage.wait_until(is_counted)
            await stage.run_phase("joining")


async def _calls_and_hedges(stage: Stage) -> tuple[float, float]:
    """Returns the number of question calls to content nodes, and how many of them are hedges."""
    methods, name = ("Retrieve", "Read", "Search"), "winnow_request_seconds_count"
    calls = [await stage.nodes_metric(name, method=method) for method in methods]
    return sum(calls), await stage.front_metric("winnow_front_hedges_total", result="sent")


async def _check_health(stage: Stage, client: AnswerClient) -> None:
    while True:
        at = stage.load.now
        if await client.available():
            stage.load.outcomes[HEALTH].append(QuestionOutcome(at, stage.load.now - at))
        await asyncio.sleep(_CHECK_INTERVAL)
