"""Row `question`: a question with three heads, against the same question without."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.common.figures import Figure, quantile, ratio
from bench.heads.stores import head_ids
from winnow.bundle import Bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.questions import read_questions
from winnow.client.messages import AnswerClient
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.progress import BuildProgress
from winnow.packaged import demo_corpus
from winnow.settings.common import cores
from winnow.v1 import answer_pb2

ROW = "question"
MOST = 1.05
_SHARDS, _WARM_UP, _DEADLINE = 3, 10, 30.0


async def question(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """The demo's index on this machine, one question in hand; every question is read anew."""
    questions = [each.question for each in read_questions(demo_corpus() / "questions.jsonl")]
    plain, with_heads = list[float](), list[float]()
    with _index(bundle) as index:
        plan = LocalPlan(index, bundle.directory, "127.0.0.1:0", front=("--heads", str(store)))
        with LocalCluster(plan) as cluster:
            cluster.start()
            await cluster.wait_ready()
            async with AnswerClient(cluster.address) as client:
                for number in range(-_WARM_UP, requests):
                    asked = questions[number % len(questions)]
                    # who goes first finds colder caches
                    pair = [((), plain), (head_ids(3), with_heads)][:: 1 if number % 2 else -1]
                    for heads, taken in pair:
                        spent = await _ask(client, asked, list(heads))
                        if number >= 0:
                            taken.append(spent)
    return [
        quantile(ROW, "a question", plain, 0.5),
        quantile(ROW, "a question with three heads", with_heads, 0.5),
        ratio(ROW, "with three heads, of without", with_heads, plain, 0.5, MOST),
    ]


async def _ask(client: AnswerClient, asked: str, heads: list[str]) -> float:
    request = answer_pb2.AnswerRequest(question=asked, heads=heads, max_loss=0, fresh=True)
    began = time.perf_counter()
    reply = await client.ask(request, _DEADLINE)
    spent = time.perf_counter() - began
    assert not any(each.failure for each in reply.heads), reply.heads
    assert len(reply.heads) == len(heads)
    return spent


@contextlib.contextmanager
def _index(bundle: Bundle) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory, BuildProgress() as progress:
        place = Path(directory) / "index"
        passages = demo_corpus() / "passages.jsonl"
        build_index(BuildPlan(passages, place, _SHARDS, threads=cores()), bundle, progress)
        yield place
