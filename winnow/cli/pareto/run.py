"""Asks every point every question, interleaved, so that the machine's drift affects all alike.

All deployments with questions left run at once; a block of questions goes to one point after the
other, and the other deployments rest meanwhile. A question with an outcome is not asked twice.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from winnow import signals
from winnow.bundle import read_manifest
from winnow.cli.asking import ask, passages_needed_of
from winnow.cli.drawing import check_picture_path
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.cli.pareto import report
from winnow.cli.pareto.figures import PointFigures, figures
from winnow.cli.pareto.outcome import JudgedReply, MeasurementKey, append, digest, load
from winnow.cli.pareto.point import Deployment, Point, megabytes, timed_only
from winnow.cli.questions import LabelledQuestion, read_questions, require_answers
from winnow.cli.result_files import created_directory, reserve
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.domain.shard import INDEX_FILE
from winnow.errors import WinnowError
from winnow.files.opened import sha256
from winnow.index_directory import shard_directories
from winnow.packaged import running_version
from winnow.settings.common import cores
from winnow.telemetry.progress import StageProgress
from winnow.text.scores import exact_match, f1
from winnow.v1 import answer_pb2

BLOCK = 10
_TIMEOUT = 60.0
_NEVER_DIMMED = ("--brown-out-floor", "1")
"""An overloaded point would read less than its name says, and look faster than it is."""
_SETTINGS = ("WINNOW_FRONT_", "WINNOW_NODE_")
"""Variables that the processes of a deployment are started with."""
_STATES = "states.json"
"""Beside a shard: names the precomputed states of its passages."""


@dataclass(frozen=True, slots=True)
class Questions:
    """A named list of questions."""

    name: str
    asked: Sequence[LabelledQuestion]

    def blocks(self, points: Sequence[Point]) -> Iterator[tuple[Point, range]]:
        """Places of questions that are asked in one go, and the point: one point after the other.

        A brief point is asked only the first question of every block.
        """
        for start in range(0, len(self.asked), BLOCK):
            for point in points:
                end = min(start + BLOCK, len(self.asked))
                yield point, range(start, end, BLOCK if point.brief else 1)


def measure(
    points: Sequence[Point], index: Path, files: Sequence[Path], limit: int, out: Path
) -> list[PointFigures]:
    """Asks every point the questions of every file, and writes the figures into `out`.

    Raises WinnowError if there is nothing to compare, or something cannot be written or started.
    """
    points = list(dict.fromkeys(points))
    sets = [Questions(path.name.split(".")[0], _spread(path, limit)) for path in files]
    _expect_distinct("points", [point.name for point in points])
    _expect_distinct("files of questions", [each.name for each in sets])
    results, picture = out / "outcomes.jsonl", out / "pareto.png"
    check_picture_path(picture)
    written = (results, picture, out / report.JSON, out / report.CSV)
    with created_directory(out), reserve(*written), StageProgress() as progress:
        outcomes = signals.run(run(points, sets, index, results, progress))
        sizes = {point.name: megabytes(point.deployment.bundle) for point in points}
        found = figures(outcomes, sizes, timed_only(points))
        report.write(found, out)
        report.plot(found, picture)
    return found


def _expect_distinct(what: str, names: Sequence[str]) -> None:
    """Outcomes are kept by name, so that equal names would be taken for the same thing."""
    for name in names:
        if names.count(name) > 1:
            raise WinnowError(f"two {what} are called {name}: rename one, or leave one out")


def _spread(path: Path, limit: int) -> list[LabelledQuestion]:
    """At most `limit` questions with answers, evenly spread over the file."""
    asked = read_questions(path)
    require_answers(asked, path)
    asked = [each for each in asked if each.answers]
    return asked[:: max(len(asked) // limit, 1)][:limit]


async def run(
    points: Sequence[Point],
    sets: Sequence[Questions],
    index: Path,
    results: Path,
    progress: StageProgress,
) -> list[JudgedReply]:
    """The outcome of every question at every point; successful outcomes of earlier runs are kept.

    Only deployments with questions left are started. Raises WinnowError if there is no index, a
    deployment cannot start, or results cannot be written.
    """
    known = _circumstances(points, index)
    work = [
        (point, asked, MeasurementKey(point.name, each.name, n, digest(asked, known[point.name])))
        for each in sets
        for point, block in each.blocks(points)
        for n, asked in zip(block, each.asked[block.start : block.stop : block.step], strict=True)
    ]
    wanted = {key for _, _, key in work}
    done = wanted & {outcome.key for outcome in load(results) if not outcome.failed}
    left = [each for each in work if each[2] not in done]
    progress.start("asking", len(wanted), len(done))
    deployments = {point.deployment.name: point.deployment for point, _, _ in left}
    async with AsyncExitStack() as stack:
        clients = await _start(deployments, index, stack)
        for point, asked, key in left:
            client = clients[point.deployment.name]
            append(results, [await _ask(client, point, asked, key)])
            progress.advance()
    return [outcome for outcome in load(results) if outcome.key in wanted]


def _circumstances(points: Sequence[Point], index: Path) -> dict[str, str]:
    """What an outcome depends on besides the question, by point: software, cores, settings, index,
    bundle, flags, and precomputed states, which change times and no answers.
    """
    shard_directories(index)
    settings = sorted(each for each in os.environ.items() if each[0].startswith(_SETTINGS))
    here = (running_version(), cores(), settings, sha256(index / INDEX_FILE))
    found = {}
    for point in points:
        flags = (*_NEVER_DIMMED, *point.deployment.front, *point.deployment.node)
        manifest = read_manifest(point.deployment.bundle)
        states: list[str] | str = ""
        if manifest.lower_fingerprint:
            states = [sha256(each) for each in sorted(index.rglob(_STATES))]
        found[point.name] = f"{here} {manifest.fingerprint} {flags}{states}"
    return found


async def _start(
    deployments: Mapping[str, Deployment], index: Path, stack: AsyncExitStack
) -> dict[str, AnswerClient]:
    clusters = {}
    for (name, each), port in zip(deployments.items(), free_ports(len(deployments)), strict=True):
        plan = LocalPlan(
            index,
            each.bundle,
            listen=f"127.0.0.1:{port}",
            front=(*_NEVER_DIMMED, *each.front),
            node=each.node,
        )
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
    client: AnswerClient, point: Point, asked: LabelledQuestion, key: MeasurementKey
) -> JudgedReply:
    options = answer_pb2.AnswerRequest(
        passages_to_read=point.passages,
        answers=1,
        max_loss=point.max_loss,
        retriever=convert.retriever_message(point.retriever),
        fresh=True,
    )
    outcome = await ask(client, asked, options, _TIMEOUT)
    if (reply := outcome.reply) is None:
        return JudgedReply(
            **key._asdict(),
            milliseconds=0.0,
            exact_match=False,
            f1=0.0,
            read=0,
            failed=True,
            error=outcome.error,
        )
    answer = reply.answers[0].text if reply.answers else ""
    return JudgedReply(
        **key._asdict(),
        milliseconds=round(1e3 * outcome.seconds, 3),
        exact_match=exact_match(answer, asked.answers),
        f1=f1(answer, asked.answers),
        read=reply.passages_read,
        needed=passages_needed_of(reply),
    )
