"""What the system costs beyond its models.

    python bench/overhead.py --index INDEX --questions FILE [--json]

For each question, one after the other: the time of one Answer through a front node and one content
node per shard, and the time of the bare models on the same work: one encoding, then the same reads
spread on as many threads as there are cores. Medians of one interleaved run, so that the machine's
drift cancels out.
"""

import argparse
import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

from content_node.reader.prepare import Window, prepare
from content_node.reader.reader import OUTPUTS
from winnow.bundle import Bundle, default_bundle, load_bundle
from winnow.client import AnswerClient
from winnow.inference.encoder import open_question_encoder
from winnow.inference.session import OnnxSession, model_inputs
from winnow.local.cluster import LocalCluster, LocalPlan
from winnow.local.ports import free_ports
from winnow.questions import read_questions
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2


class Bare:
    """The models alone: no index, no gRPC, no decoding."""

    def __init__(self, bundle: Bundle) -> None:
        self._tokenizer = Tokenizer(bundle.tokenizer)
        self._encoder = open_question_encoder(bundle, self._tokenizer.special)
        self._session = OnnxSession(bundle.reader, OUTPUTS)
        self._entry = bundle.manifest.reader
        self._pool = ThreadPoolExecutor(cores())

    def seconds(self, question: str, passages: list[answer_pb2.Passage]) -> float:
        """One encoding, then all reads; tokenising is done before the clock starts."""
        ids = self._tokenizer.tokenise(question).ids[:62]
        windows = [window for p in passages for window in self._windows(ids, p)]
        started = time.perf_counter()
        self._encoder.question(ids)
        list(self._pool.map(self._run, windows))
        return time.perf_counter() - started

    def _windows(self, ids: tuple[int, ...], passage: answer_pb2.Passage) -> list[Window]:
        title, text = (self._tokenizer.tokenise(part).ids for part in (passage.title, passage.text))
        return prepare(ids, title, text, self._tokenizer.special, self._entry)

    def _run(self, window: Window) -> None:
        self._session.run(model_inputs(window.ids, window.types))


async def measure(
    address: str, bare: Bare, questions: list[str], passages: int
) -> list[tuple[float, float]]:
    """(Answer, bare) seconds of every question."""
    found = []
    async with AnswerClient(address) as client:
        for number, question in enumerate(questions):
            request = answer_pb2.AnswerRequest(
                question=question, passages_to_read=passages, answers=100
            )
            started = time.perf_counter()
            reply = await client.ask(request, 30)
            spent = time.perf_counter() - started
            found.append((spent, bare.seconds(question, [a.passage for a in reply.answers])))
            if number % 50 == 0:
                print(f"{number}/{len(questions)}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asked = [each.question for each in read_questions(options.questions)]
    stride = max(len(asked) // options.limit, 1)
    bundle = load_bundle(default_bundle())
    plan = LocalPlan(options.index, bundle.directory, f"127.0.0.1:{free_ports(1)[0]}")
    with LocalCluster(plan) as cluster:
        cluster.start()
        asyncio.run(cluster.wait_ready())
        bare = Bare(bundle)
        asyncio.run(measure(cluster.address, bare, asked[:20], options.passages))
        chosen = asked[::stride][: options.limit]
        found = asyncio.run(measure(cluster.address, bare, chosen, options.passages))
    ratios = quantiles([whole / alone for whole, alone in found], n=4)
    report = {
        "questions": len(found),
        "answer_p50_ms": round(1e3 * median(whole for whole, _ in found), 2),
        "bare_p50_ms": round(1e3 * median(alone for _, alone in found), 2),
        "ratio_of_medians": round(
            median(whole for whole, _ in found) / median(alone for _, alone in found), 3
        ),
        "ratio_quartiles": [round(ratio, 3) for ratio in ratios],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
