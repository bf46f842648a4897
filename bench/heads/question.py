"""Part `question`: latency of a question with three heads, compared with one without heads."""

import tempfile
from functools import partial
from pathlib import Path

from bench.figures import Figure, at_most, quantile_figure, ratio_figure
from bench.heads.synthetic_heads import head_ids
from bench.interleaving import interleaved_latencies
from winnow.bundle import Bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client.messages import AnswerClient
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan, BuildProgress
from winnow.labelled_questions import read_questions
from winnow.packaged import demo_corpus
from winnow.settings.common import cores
from winnow.v1 import answer_pb2

MAX_RATIO = 1.05
_SHARDS, _WARM_UP, _DEADLINE = 3, 10, 30.0


async def measure_question(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """Asks the demo index one question at a time, with and without heads, and uncached."""
    rows = read_questions(demo_corpus() / "questions.jsonl")
    questions = [rows[number % len(rows)].question for number in range(requests)]
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
                variants = {
                    "a question": partial(_ask_question, client, head_ids(0)),
                    "a question with three heads": partial(_ask_question, client, head_ids(3)),
                }
                await interleaved_latencies(variants, questions[:_WARM_UP])
                latencies = await interleaved_latencies(variants, questions)
    plain, with_heads = latencies.values()
    ratio = ratio_figure("question", "with three heads / without heads", with_heads, plain, 0.5)
    return [
        *(quantile_figure("question", name, seconds, 0.5) for name, seconds in latencies.items()),
        at_most(ratio, MAX_RATIO),
    ]


async def _ask_question(client: AnswerClient, heads: list[str], question: str) -> None:
    request = answer_pb2.AnswerRequest(question=question, heads=heads, max_loss=0, fresh=True)
    reply = await client.ask(request, _DEADLINE)
    assert not any(each.failure for each in reply.heads), reply.heads
    assert len(reply.heads) == len(heads)
