"""Part `question`: latency of a question with three heads, compared with no heads."""

import tempfile
import time
from pathlib import Path

from bench.figures import Figure, at_most, quantile_figure, ratio_figure
from bench.heads.synthetic_heads import head_ids
from bench.interleaving import interleaved
from winnow.bundle import Bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.questions import read_questions
from winnow.client.messages import AnswerClient
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan, BuildProgress
from winnow.packaged import demo_corpus
from winnow.settings.common import cores
from winnow.v1 import answer_pb2

MAX_RATIO = 1.05
_SHARDS, _WARM_UP, _DEADLINE = 3, 10, 30.0


async def measure_question(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """Asks the demo's index on this machine, one question at a time, without cached answers."""
    rows = read_questions(demo_corpus() / "questions.jsonl")
    questions = [rows[number % len(rows)].question for number in range(requests)]
    latencies: dict[int, list[float]] = {0: [], 3: []}
    with tempfile.TemporaryDirectory() as directory:
        index = Path(directory) / "index"
        passages = demo_corpus() / "passages.jsonl"
        with BuildProgress() as progress:
            build_plan = BuildPlan(source=passages, target=index, shards=_SHARDS, threads=cores())
            build_index(build_plan, bundle, progress)
        plan = LocalPlan(index, bundle.directory, "127.0.0.1:0", front=("--heads", str(store)))
        with LocalCluster(plan) as cluster:
            cluster.start()
            await cluster.wait_ready()
            async with AnswerClient(cluster.address) as client:
                for heads, each in interleaved(list(latencies), questions[:_WARM_UP]):
                    await _ask(client, each, head_ids(heads))
                for heads, each in interleaved(list(latencies), questions):
                    latencies[heads].append(await _ask(client, each, head_ids(heads)))
    return [
        quantile_figure("question", "a question", latencies[0], 0.5),
        quantile_figure("question", "a question with three heads", latencies[3], 0.5),
        at_most(
            ratio_figure(
                "question", "with three heads, of without", latencies[3], latencies[0], 0.5
            ),
            MAX_RATIO,
        ),
    ]


async def _ask(client: AnswerClient, question: str, heads: list[str]) -> float:
    request = answer_pb2.AnswerRequest(question=question, heads=heads, max_loss=0, fresh=True)
    started = time.perf_counter()
    reply = await client.ask(request, _DEADLINE)
    seconds = time.perf_counter() - started
    assert not any(each.failure for each in reply.heads), reply.heads
    assert len(reply.heads) == len(heads)
    return seconds
