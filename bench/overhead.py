"""What the system costs beyond its models.

    python -m bench.overhead --index INDEX --questions FILE [--json]

Each question is asked three ways, ten questions one way before the next:

- one Answer through a front node and one content node per shard;
- the bare models on the same work, on the same threads: one encoding, then each shard's reads in a
  process of its own with as many threads as a content node has;
- the bare models on the same work in one process with a thread per core, as they would run if the
  index were not spread.

No index, no gRPC, no tokenising and no decoding in the bare ones. Medians of one interleaved run,
so that the machine's drift cancels out; blocks of ten, so that each way finds its caches warm, as
it would under steady traffic.
"""

import asyncio
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles

from bench.common.arguments import parser
from bench.common.arguments import questions as read
from bench.common.figures import Figure, show
from winnow.bundle import Bundle, default_bundle, load_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.client.messages import AnswerClient
from winnow.content_node.reader.prepare import Window, prepare
from winnow.content_node.reader.whole import OUTPUTS
from winnow.inference.encoder import open_question_encoder
from winnow.inference.onnx import OnnxSession
from winnow.inference.session import model_inputs
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2

BLOCK = 10


@dataclass(frozen=True, slots=True)
class Seconds:
    """What one question took, each way."""

    answer: float
    same_threads: float
    one_process: float


def read_bare(connection: Connection, graph: Path, threads: int) -> None:
    """A process that runs the reader on the windows it is sent, until it is sent none."""
    session = OnnxSession(graph, OUTPUTS)

    def run(window: Window) -> None:
        session.run(model_inputs(window.ids, window.types))

    with ThreadPoolExecutor(threads) as pool:
        while windows := connection.recv():
            list(pool.map(run, windows))
            connection.send(None)


@contextmanager
def readers(graph: Path, processes: int, threads: int) -> Iterator[list[Connection]]:
    """Bare readers in processes of their own."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(processes)]
    started = [
        context.Process(target=read_bare, args=(theirs, graph, threads)) for _, theirs in pipes
    ]
    for process in started:
        process.start()
    try:
        yield [ours for ours, _ in pipes]
    finally:
        for ours, _ in pipes:
            ours.send([])
        for process in started:
            process.join()


class Bare:
    """The models alone: one encoding here, then reads in other processes."""

    def __init__(self, bundle: Bundle) -> None:
        self._tokenizer = Tokenizer(bundle.tokenizer)
        self._encoder = open_question_encoder(bundle, self._tokenizer.special)
        self._entry = bundle.manifest.reader

    def seconds(
        self, question: str, shares: Iterable[Sequence[answer_pb2.Passage]], where: list[Connection]
    ) -> float:
        """One encoding, then every share of the reads in its process; the tokenising is not
        counted.
        """
        ids = self._tokenizer.tokenise(question).ids[:62]
        work = [
            (connection, [window for passage in share for window in self._windows(ids, passage)])
            for connection, share in zip(where, shares, strict=True)
            if share
        ]
        started = time.perf_counter()
        self._encoder.question(ids)
        for connection, windows in work:
            connection.send(windows)
        for connection, _ in work:
            connection.recv()
        return time.perf_counter() - started

    def _windows(self, ids: tuple[int, ...], passage: answer_pb2.Passage) -> list[Window]:
        title, text = (self._tokenizer.tokenise(part).ids for part in (passage.title, passage.text))
        return prepare(ids, title, text, self._tokenizer.special, self._entry)


async def measure(
    address: str,
    bare: Bare,
    spread: list[Connection],
    alone: list[Connection],
    questions: list[str],
    passages: int,
) -> list[Seconds]:
    """Every question each way, `BLOCK` questions one way before the next."""
    found: list[Seconds] = []
    async with AnswerClient(address) as client:
        for start in range(0, len(questions), BLOCK):
            block = questions[start : start + BLOCK]
            answered = [await answer(client, question, passages) for question in block]
            replies = [reply for reply, _ in answered]
            shares = [by_shard(reply.answers, len(spread)) for reply in replies]
            whole = [[[each.passage for each in reply.answers]] for reply in replies]
            same = [bare.seconds(q, parts, spread) for q, parts in zip(block, shares, strict=True)]
            one = [bare.seconds(q, parts, alone) for q, parts in zip(block, whole, strict=True)]
            spent = [seconds for _, seconds in answered]
            found += [Seconds(*each) for each in zip(spent, same, one, strict=True)]
            print(f"{len(found)}/{len(questions)}", file=sys.stderr, flush=True)
    return found


async def answer(
    client: AnswerClient, question: str, passages: int
) -> tuple[answer_pb2.AnswerResponse, float]:
    """The reply, with every passage that was read, and its seconds."""
    request = answer_pb2.AnswerRequest(
        question=question, passages_to_read=passages, answers=100, max_loss=0, fresh=True
    )
    started = time.perf_counter()
    reply = await client.ask(request, 30)
    return reply, time.perf_counter() - started


def by_shard(
    answers: Iterable[answer_pb2.Answer], shards: int
) -> list[Sequence[answer_pb2.Passage]]:
    """The passages that each shard read."""
    shares = defaultdict(list)
    for answer in answers:
        shares[answer.shard].append(answer.passage)
    return [shares[shard] for shard in range(shards)]


def report(found: Sequence[Seconds]) -> list[Figure]:
    """Medians in milliseconds, and the ratios of medians with the quartiles of each question's."""
    answer = median(each.answer for each in found)
    figures = [
        Figure("overhead", "questions", len(found), ""),
        Figure("overhead", "an answer, p50", 1e3 * answer, "ms"),
    ]
    for name in ("same_threads", "one_process"):
        alone = median(getattr(each, name) for each in found)
        low, _, high = quantiles([each.answer / getattr(each, name) for each in found], n=4)
        what = f"bare models, {name.replace('_', ' ')}"
        figures += [
            Figure("overhead", f"{what}, p50", 1e3 * alone, "ms"),
            Figure("overhead", f"an answer, of {what}", answer / alone, "times", (low, high)),
        ]
    return figures


def main() -> int:
    """Measures; the exit code."""
    arguments = parser("overhead", __doc__, asks=True)
    arguments.add_argument("--limit", type=int, default=300)
    arguments.add_argument("--passages", type=int, default=10)
    arguments.add_argument(
        "--reader-threads", type=int, default=cores(), help="of each content node"
    )
    options = arguments.parse_args()
    asked = read(options.questions)
    chosen = read(options.questions, options.limit)
    bundle = load_bundle(default_bundle().parent / "whole")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    plan = LocalPlan(
        options.index, bundle.directory, address, reader_threads=options.reader_threads
    )
    shards = len(list(options.index.glob("shard-*")))
    with (
        LocalCluster(plan) as cluster,
        readers(bundle.reader, shards, options.reader_threads) as spread,
        readers(bundle.reader, 1, cores()) as alone,
    ):
        cluster.start()
        asyncio.run(cluster.wait_ready())
        bare = Bare(bundle)
        for questions in (asked[:20], chosen):  # the first are to warm up
            found = asyncio.run(
                measure(cluster.address, bare, spread, alone, questions, options.passages)
            )
    return show(report(found), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
