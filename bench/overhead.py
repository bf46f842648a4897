"""What the system costs beyond its models.

    python -m bench overhead --index INDEX --questions FILE [--json]

Each question is asked three ways, ten questions one way before the next:

- one Answer through a front node and one content node per shard;
- the bare models on the same work, on the same threads: one encoding, then each shard's reads in
  its own process with as many threads as a content node has;
- the bare models on the same work in one process with a thread per core, as if the index were not
  spread.

The bare ones have no index, no gRPC, no tokenising and no decoding. The figures are medians of one
interleaved run, so that the machine's drift cancels out. Blocks of ten let each way find its caches
warm, as it would under steady traffic.
"""

import argparse
import asyncio
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from bench.figures import Figure, show
from bench.inputs import add_index_and_questions, questions
from bench.interleaving import interleaved
from bench.quantiles import nearest_rank
from winnow.bundle import Bundle, default_bundle, load_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client.messages import AnswerClient
from winnow.content_node.reader.cross_encoder import Window, prepare
from winnow.content_node.reader.model import OUTPUTS
from winnow.inference.encoder import open_question_encoder
from winnow.inference.onnx import OnnxSession
from winnow.inference.session import model_inputs
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2

BLOCK = 10
"""Questions that are asked one way before the next."""
ANSWER, SAME_THREADS, ONE_PROCESS = "an answer", "same threads", "one process"
Shares = Sequence[Sequence[answer_pb2.Passage]]
"""The passages that each process reads."""


def read_bare(connection: Connection, graph: Path, threads: int) -> None:
    """Runs the reader on the windows that a process is sent, until it is sent none."""
    session = OnnxSession(graph, OUTPUTS)

    def run(window: Window) -> None:
        session.run(model_inputs(window.ids, window.types))

    with ThreadPoolExecutor(threads) as pool:
        while windows := connection.recv():
            list(pool.map(run, windows))
            connection.send(None)


@contextmanager
def bare_reader_processes(graph: Path, processes: int, threads: int) -> Iterator[list[Connection]]:
    """Starts bare readers, each in its own process."""
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


class BareModels:
    """The models alone: one encoding here, then reads in other processes."""

    def __init__(self, bundle: Bundle) -> None:
        self._tokenizer = Tokenizer(bundle.tokenizer)
        self._encoder = open_question_encoder(bundle, self._tokenizer.special)
        self._entry = bundle.manifest.reader

    def seconds(self, question: str, shares: Shares, processes: Sequence[Connection]) -> float:
        """Encodes a question, and reads each share in its process; does not count tokenising."""
        ids = self._tokenizer.tokenise(question).ids[:62]
        work = [
            (connection, [window for passage in share for window in self._windows(ids, passage)])
            for connection, share in zip(processes, shares, strict=True)
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
    bare: BareModels,
    spread: Sequence[Connection],
    alone: Sequence[Connection],
    asked: Sequence[str],
    passages: int,
) -> dict[str, list[float]]:
    """Returns the seconds of every question by way. Each was answered once before, to warm up."""
    taken: dict[str, list[float]] = {ANSWER: [], SAME_THREADS: [], ONE_PROCESS: []}
    async with AnswerClient(address) as client:
        replies = {each: await answer(client, each, passages) for each in asked}
        print(f"asked {len(replies)} questions once", file=sys.stderr, flush=True)
        for way, question in interleaved(list(taken), asked, BLOCK):
            answers = replies[question].answers
            if way == ANSWER:
                started = time.perf_counter()
                await answer(client, question, passages)
                seconds = time.perf_counter() - started
            elif way == SAME_THREADS:
                seconds = bare.seconds(question, by_shard(answers, len(spread)), spread)
            else:
                seconds = bare.seconds(question, [[each.passage for each in answers]], alone)
            taken[way].append(seconds)
    return taken


async def answer(client: AnswerClient, question: str, passages: int) -> answer_pb2.AnswerResponse:
    """Returns the reply with every passage that was read."""
    request = answer_pb2.AnswerRequest(
        question=question, passages_to_read=passages, answers=100, max_loss=0, fresh=True
    )
    return await client.ask(request, 30)


def by_shard(answers: Iterable[answer_pb2.Answer], shards: int) -> Shares:
    """Returns the passages that each shard read."""
    shares = defaultdict(list)
    for each in answers:
        shares[each.shard].append(each.passage)
    return [shares[shard] for shard in range(shards)]


def report(taken: Mapping[str, Sequence[float]]) -> list[Figure]:
    """Returns medians in milliseconds, and their ratios with the quartiles of each question's."""
    whole = median(taken[ANSWER])
    figures = [
        Figure("overhead", "questions", len(taken[ANSWER])),
        Figure("overhead", "an answer, p50", 1e3 * whole, "ms"),
    ]
    for way in (SAME_THREADS, ONE_PROCESS):
        alone, what = median(taken[way]), f"bare models, {way}"
        ratios = [ours / bare for ours, bare in zip(taken[ANSWER], taken[way], strict=True)]
        spread = (nearest_rank(ratios, 0.25), nearest_rank(ratios, 0.75))
        figures += [
            Figure("overhead", f"{what}, p50", 1e3 * alone, "ms"),
            Figure("overhead", f"an answer, of {what}", whole / alone, "times", spread=spread),
        ]
    return figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench overhead`."""
    add_index_and_questions(parser)
    parser.add_argument("--limit", type=int, default=300, help="maximum number of questions")
    parser.add_argument("--passages", type=int, default=10, help="passages that a question reads")
    parser.add_argument("--reader-threads", type=int, default=cores(), help="of each content node")


def run(options: argparse.Namespace) -> int:
    """Measures; returns the exit code."""
    bundle = load_bundle(default_bundle().parent / "whole")
    plan = LocalPlan(
        options.index, bundle.directory, "127.0.0.1:0", reader_threads=options.reader_threads
    )
    shards = len(list(options.index.glob("shard-*")))
    with (
        LocalCluster(plan) as cluster,
        bare_reader_processes(bundle.reader, shards, options.reader_threads) as spread,
        bare_reader_processes(bundle.reader, 1, cores()) as alone,
    ):
        cluster.start()
        asyncio.run(cluster.wait_ready())
        asked = questions(options.questions, options.limit)
        models = BareModels(bundle)
        taken = asyncio.run(
            measure(cluster.address, models, spread, alone, asked, options.passages)
        )
    return show(report(taken), as_json=options.json)
