"""Asking every point every question, interleaved, so that the machine's drift cancels out.

All deployments that have something left to be asked run at once and rest while another is asked; a
block of questions goes to one point after the other. What was asked before is not asked again.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from winnow.bundle import read_manifest
from winnow.cli.local.cluster import LocalCluster, LocalPlan, shard_directories
from winnow.cli.local.ports import free_ports
from winnow.cli.pareto.outcome import JudgedReply, MeasurementKey, append, digest, load
from winnow.cli.pareto.point import Deployment, Point
from winnow.cli.questions import AskedQuestion
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.domain.shard import INDEX_FILE
from winnow.errors import WinnowError
from winnow.files.opened import sha256
from winnow.packaged import running_version
from winnow.settings.common import cores
from winnow.telemetry.progress import StageProgress
from winnow.text.scores import exact_match, f1
from winnow.v1 import answer_pb2

BLOCK = 10
_TIMEOUT = 60.0
_NEVER_DIMMED = ("--brown-out-floor", "1")
"""A slow point would be let read less than it says, and look faster than it is."""
_SETTINGS = ("WINNOW_FRONT_", "WINNOW_NODE_")
"""Variables that the processes of a deployment are started with."""

_STATES = "states.json"
"""Beside a shard: names what was read of its passages beforehand."""


@dataclass(frozen=True, slots=True)
class Questions:
    """A named list of questions."""

    name: str
    asked: Sequence[AskedQuestion]

    def key(self, number: int, point: str, about: Mapping[str, str]) -> MeasurementKey:
        """Names the outcome of a question at a point."""
        return MeasurementKey(point, self.name, number, digest(self.asked[number], about[point]))

    def places(self, point: Point) -> range:
        """Of the questions that a point is asked: all, or the first of every block."""
        return range(0, len(self.asked), BLOCK if point.brief else 1)

    def blocks(self, points: Sequence[Point]) -> Iterator[tuple[Point, range]]:
        """Places of questions that are asked together, and whom: one point after the other."""
        for start in range(0, len(self.asked), BLOCK):
            for point in points:
                end = min(start + BLOCK, len(self.asked))
                yield point, range(start, end, self.places(point).step)


async def run(
    points: Sequence[Point],
    sets: Sequence[Questions],
    index: Path,
    results: Path,
    progress: StageProgress,
) -> list[JudgedReply]:
    """The outcome of every question at every point, of an earlier run where there is one that did
    not fail. Only points with something left to ask are started.

    Raises:
        WinnowError: there is no index, a deployment cannot start, or results cannot be written.

    """
    about = _about(points, index)
    work = [
        (point, questions, questions.key(number, point.name, about))
        for questions in sets
        for point, block in questions.blocks(points)
        for number in block
    ]
    wanted = {key for _, _, key in work}
    done = wanted & {outcome.key for outcome in load(results) if not outcome.failed}
    left = [each for each in work if each[2] not in done]
    progress.start("asking", len(wanted), len(done))
    deployments = {point.deployment.name: point.deployment for point, _, _ in left}
    async with AsyncExitStack() as stack:
        clients = await _start(deployments, index, stack)
        for point, questions, key in left:
            client = clients[point.deployment.name]
            append(results, [await _ask(client, point, questions, key)])
            progress.advance()
    return [outcome for outcome in load(results) if outcome.key in wanted]


def _about(points: Sequence[Point], index: Path) -> dict[str, str]:
    """By point, what an outcome depends on beside the question: software, cores, settings, index,
    bundle and flags.
    """
    shard_directories(index)
    settings = sorted(each for each in os.environ.items() if each[0].startswith(_SETTINGS))
    here = (running_version(), cores(), settings, sha256(index / INDEX_FILE))
    found = {}
    for point in points:
        deployed = point.deployment
        flags = (*_front(deployed), *deployed.node)
        manifest = read_manifest(deployed.bundle)
        states = _states(index) if manifest.lower_fingerprint else ""
        found[point.name] = f"{here} {manifest.fingerprint} {flags}{states}"
    return found


def _states(index: Path) -> list[str]:
    """What was read beforehand: answers do not depend on it, their time does."""
    return [sha256(each) for each in sorted(index.rglob(_STATES))]


def _front(deployment: Deployment) -> tuple[str, ...]:
    return (*_NEVER_DIMMED, *deployment.front)


async def _start(
    deployments: Mapping[str, Deployment], index: Path, stack: AsyncExitStack
) -> dict[str, AnswerClient]:
    clusters = {}
    for (name, each), port in zip(deployments.items(), free_ports(len(deployments)), strict=True):
        front = _front(each)
        plan = LocalPlan(index, each.bundle, f"127.0.0.1:{port}", front=front, node=each.node)
        clusters[name] = stack.enter_context(LocalCluster(plan))
        clusters[name].start()
    for cluster in clusters.values():
        await cluster.wait_ready()
    clients = {}
    for name, cluster in clusters.items():
        clients[name] = await stack.enter_async_context(AnswerClient(cluster.address))
        await clients[name].ask(answer_pb2.AnswerRequest(question="Are you warm?"), _TIMEOUT)
    return clients


async def _ask(
    client: AnswerClient, point: Point, questions: Questions, key: MeasurementKey
) -> JudgedReply:
    asked = questions.asked[key.number]
    request = answer_pb2.AnswerRequest(
        question=asked.question,
        passages_to_read=point.passages,
        answers=1,
        max_loss=point.max_loss,
        retriever=convert.retriever_message(point.retriever),
        fresh=True,
    )
    started = time.perf_counter()
    try:
        reply = await client.ask(request, _TIMEOUT)
    except WinnowError as error:
        return JudgedReply(*key[:3], 0.0, False, 0.0, 0, True, str(error), key.asked)
    spent = 1e3 * (time.perf_counter() - started)
    said = reply.answers[0].text if reply.answers else ""
    return JudgedReply(
        *key[:3],
        round(spent, 3),
        exact_match(said, asked.answers),
        f1(said, asked.answers),
        reply.passages_read,
        asked=key.asked,
        needed=reply.passages_needed if reply.HasField("passages_needed") else None,
    )
