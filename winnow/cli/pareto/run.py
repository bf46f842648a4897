"""Asks every operating point every question. The points take turns.

So changes in the speed of the machine affect all points alike. All deployments run at the same
time, but only one is asked at a time: each block of questions goes to one point after the other. A
question that already has an outcome is not asked again.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from winnow import signals
from winnow.bundle import read_manifest
from winnow.cli.asking import ask, reported_passages_needed
from winnow.cli.drawing import check_picture_path
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.cli.pareto import report
from winnow.cli.pareto.figures import PointFigures, compute_point_figures
from winnow.cli.pareto.outcome import (
    JudgedReply,
    MeasurementKey,
    append_replies,
    load_replies,
    measurement_digest,
)
from winnow.cli.pareto.point import Deployment, OperatingPoint, bundle_megabytes, timed_only_points
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.domain.shard import INDEX_FILE
from winnow.errors import WinnowError
from winnow.files.opened import sha256
from winnow.files.result_files import created_directory, reserve_files
from winnow.index_directory import shard_directories
from winnow.labelled_questions import LabelledQuestion, read_questions, require_answers
from winnow.packaged import running_version
from winnow.settings.common import cores
from winnow.telemetry.progress import StageProgress
from winnow.text.scores import exact_match, f1
from winnow.v1 import answer_pb2

BLOCK = 10
"""Number of questions that a point is asked in a row."""
_TIMEOUT = 60.0
_NO_BROWN_OUT = ("--brown-out-floor", "1")
"""Flags that disable brown-out: an overloaded point would read fewer passages and look faster."""
_SETTINGS = ("WINNOW_FRONT_", "WINNOW_NODE_")
"""Prefixes of the variables that configure the processes of a deployment."""
_STATES = "states.json"
"""Manifest of the precomputed states of a shard."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of a file."""

    name: str
    """Name of the file, without suffixes."""
    questions: Sequence[LabelledQuestion]

    def blocks(self, points: Sequence[OperatingPoint]) -> Iterator[tuple[OperatingPoint, range]]:
        """Yields each block of questions (indexes) for each point in turn.

        A brief point is asked only the first question of every block.
        """
        for start in range(0, len(self.questions), BLOCK):
            for point in points:
                end = min(start + BLOCK, len(self.questions))
                yield point, range(start, end, BLOCK if point.brief else 1)


def measure_points(
    points: Sequence[OperatingPoint], index: Path, files: Sequence[Path], limit: int, out: Path
) -> list[PointFigures]:
    """Asks every point the questions of every file, and writes the figures into `out`.

    Raises WinnowError if two points or files have the same name, if a file cannot be read or
    written, or if a deployment cannot start.
    """
    points = list(dict.fromkeys(points))
    sets = [QuestionSet(path.name.split(".")[0], _sample(path, limit)) for path in files]
    _expect_distinct("points", [point.name for point in points])
    _expect_distinct("files of questions", [each.name for each in sets])
    results, picture = out / "outcomes.jsonl", out / "pareto.png"
    check_picture_path(picture)
    written = (results, picture, out / report.JSON, out / report.CSV)
    with created_directory(out), reserve_files(*written), StageProgress() as progress:
        outcomes = signals.run(ask_points(points, sets, index, results, progress))
        sizes = {point.name: bundle_megabytes(point.deployment.bundle) for point in points}
        figures = compute_point_figures(outcomes, sizes, timed_only_points(points))
        report.write_results(figures, out)
        report.plot(figures, picture)
    return figures


def _expect_distinct(kind: str, names: Sequence[str]) -> None:
    """Raises WinnowError if a name repeats: outcomes are stored by name."""
    for name in names:
        if names.count(name) > 1:
            raise WinnowError(f"two {kind} are called {name}: rename one, or leave one out")


def _sample(path: Path, limit: int) -> list[LabelledQuestion]:
    """At most `limit` questions with accepted answers, evenly spread over the file."""
    questions = read_questions(path)
    require_answers(questions, path)
    labelled = [each for each in questions if each.answers]
    return labelled[:: max(len(labelled) // limit, 1)][:limit]


async def ask_points(
    points: Sequence[OperatingPoint],
    sets: Sequence[QuestionSet],
    index: Path,
    results: Path,
    progress: StageProgress,
) -> list[JudgedReply]:
    """Asks every point every question, except those with a successful outcome in `results`.

    Starts only deployments with questions to ask. Raises WinnowError if there is no index, a
    deployment cannot start, or results cannot be written.
    """
    setups = _setups(points, index)
    work = []
    for each in sets:
        for point, block in each.blocks(points):
            for n in block:
                question = each.questions[n]
                asked = measurement_digest(question, setups[point.name])
                work.append((point, question, MeasurementKey(point.name, each.name, n, asked)))
    keys = {key for _, _, key in work}
    done = keys & {outcome.key for outcome in load_replies(results) if not outcome.failed}
    pending = [each for each in work if each[2] not in done]
    progress.start("asking", len(keys), len(done))
    deployments = {point.deployment.name: point.deployment for point, _, _ in pending}
    async with AsyncExitStack() as stack:
        clients = await _start(deployments, index, stack)
        for point, question, key in pending:
            client = clients[point.deployment.name]
            append_replies(results, [await _ask(client, point, question, key)])
            progress.advance()
    return [outcome for outcome in load_replies(results) if outcome.key in keys]


def _setups(points: Sequence[OperatingPoint], index: Path) -> dict[str, str]:
    """Describes everything except the question that outcomes depend on, by name of the point.

    This is the software, cores, settings, index, bundle, flags, and precomputed states. (States
    change only times.)
    """
    shard_directories(index)
    settings = sorted(each for each in os.environ.items() if each[0].startswith(_SETTINGS))
    machine = (running_version(), cores(), settings, sha256(index / INDEX_FILE))
    setups = {}
    for point in points:
        flags = (*_NO_BROWN_OUT, *point.deployment.front, *point.deployment.node)
        manifest = read_manifest(point.deployment.bundle)
        states: list[str] | str = ""
        if manifest.lower_layers_fingerprint:
            states = [sha256(each) for each in sorted(index.rglob(_STATES))]
        setups[point.name] = f"{machine} {manifest.fingerprint} {flags}{states}"
    return setups


async def _start(
    deployments: Mapping[str, Deployment], index: Path, stack: AsyncExitStack
) -> dict[str, AnswerClient]:
    clusters = {}
    for (name, each), port in zip(deployments.items(), free_ports(len(deployments)), strict=True):
        plan = LocalPlan(
            index,
            each.bundle,
            listen=f"127.0.0.1:{port}",
            front=(*_NO_BROWN_OUT, *each.front),
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
    client: AnswerClient, point: OperatingPoint, question: LabelledQuestion, key: MeasurementKey
) -> JudgedReply:
    options = answer_pb2.AnswerRequest(
        passages_to_read=point.passages,
        answers=1,
        max_loss=point.max_loss,
        retriever=convert.retriever_message(point.retriever),
        fresh=True,
    )
    outcome = await ask(client, question, options, _TIMEOUT)
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
        exact_match=exact_match(answer, question.answers),
        f1=f1(answer, question.answers),
        read=reply.passages_read,
        needed=reported_passages_needed(reply),
    )
