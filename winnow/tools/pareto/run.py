"""Asking every point every question, interleaved, so that the machine's drift cancels out.

All deployments run at once and rest while another is asked; a block of questions goes to one point
after the other. What was asked before is not asked again.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.errors import WinnowError
from winnow.text.scores import exact_match, f1
from winnow.tools.local.cluster import LocalCluster, LocalPlan
from winnow.tools.local.ports import free_ports
from winnow.tools.pareto.outcome import Outcome, append, load
from winnow.tools.pareto.point import Deployment, Point
from winnow.tools.questions import AskedQuestion
from winnow.v1 import answer_pb2

BLOCK = 10
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Questions:
    """A named list of questions."""

    name: str
    asked: Sequence[AskedQuestion]

    def blocks(self) -> Iterator[list[int]]:
        """Places of questions that are asked together."""
        places = list(range(len(self.asked)))
        for start in range(0, len(places), BLOCK):
            yield places[start : start + BLOCK]


async def run(
    points: Sequence[Point],
    sets: Sequence[Questions],
    index: Path,
    results: Path,
    advance: Callable[[int], None],
) -> list[Outcome]:
    """Every outcome, those of earlier runs too; `advance` is told of questions that are done.

    Raises:
        WinnowError: a deployment cannot start.

    """
    before = load(results)
    done = {(o.point, o.questions, o.number) for o in before}
    async with AsyncExitStack() as stack:
        clients = await _start({p.deployment.name: p.deployment for p in points}, index, stack)
        for questions in sets:
            for block in questions.blocks():
                for point in points:
                    left = [n for n in block if (point.name, questions.name, n) not in done]
                    client = clients[point.deployment.name]
                    asked = [await _ask(client, point, questions, number) for number in left]
                    append(results, asked)
                    advance(len(block))
    return load(results)


async def _start(
    deployments: Mapping[str, Deployment], index: Path, stack: AsyncExitStack
) -> dict[str, AnswerClient]:
    clusters = {}
    for (name, each), port in zip(deployments.items(), free_ports(len(deployments)), strict=True):
        plan = LocalPlan(index, each.bundle, f"127.0.0.1:{port}", front=each.front, node=each.node)
        clusters[name] = stack.enter_context(LocalCluster(plan))
        clusters[name].start()
    for cluster in clusters.values():
        await cluster.wait_ready()
    clients = {}
    for name, cluster in clusters.items():
        clients[name] = await stack.enter_async_context(AnswerClient(cluster.address))
        await clients[name].ask(answer_pb2.AnswerRequest(question="Are you warm?"), _TIMEOUT)
    return clients


async def _ask(client: AnswerClient, point: Point, questions: Questions, number: int) -> Outcome:
    asked = questions.asked[number]
    request = answer_pb2.AnswerRequest(
        question=asked.question[:1000],
        passages_to_read=point.passages,
        answers=1,
        max_loss=point.max_loss,
        retriever=convert.retriever_message(point.retriever),
    )
    started = time.perf_counter()
    try:
        reply = await client.ask(request, _TIMEOUT)
    except WinnowError:
        return Outcome(point.name, questions.name, number, 0.0, False, 0.0, 0, failed=True)
    spent = 1e3 * (time.perf_counter() - started)
    said = reply.answers[0].text if reply.answers else ""
    return Outcome(
        point.name,
        questions.name,
        number,
        round(spent, 3),
        exact_match(said, asked.answers),
        f1(said, asked.answers),
        reply.passages_read,
    )
