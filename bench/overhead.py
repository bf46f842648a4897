"""Compares the latency of an answer with that of the bare models on the same work.

    python -m bench overhead --index INDEX --questions FILE [--json]

Measures each question in three variants:

- one Answer call through a front node and one content node per shard, or with --one-process
  through one process;
- the bare models with the same threads: one encoding, then the reads of each shard in a separate
  process with as many threads as a content node has;
- the bare models in one process with a thread per core, as if the index had one shard.

The bare models have no index, no gRPC, no tokenising and no decoding. The figures are medians of
one interleaved run, so that drift of the machine cancels out. The variants alternate after ten
questions, so that each finds its caches warm, as under steady traffic.
"""

import argparse
import asyncio
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from bench.figures import Figure, print_figures
from bench.inputs import add_index_and_questions, read_question_texts
from bench.interleaving import interleaved
from bench.quantiles import nearest_rank
from winnow.bundle import Bundle, load_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client.messages import AnswerClient
from winnow.content_node.reader.cross_encoder import Window, build_windows
from winnow.content_node.reader.model import OUTPUTS
from winnow.inference.encoder import open_question_encoder
from winnow.inference.onnx import OnnxSession
from winnow.inference.session import model_inputs
from winnow.packaged import default_bundle
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2

BLOCK_SIZE = 10
"""Questions that one variant answers before the next variant."""
CLUSTER, BY_SHARD, ONE_PROCESS = "an answer", "same threads", "one process"
"""The variants."""


def serve_bare_reader(connection: Connection, graph: Path, threads: int) -> None:
    """Runs the reader on each list of windows from `connection`; an empty list ends it."""
    session = OnnxSession(graph, OUTPUTS)

    def read(window: Window) -> None:
        session.run(model_inputs(window.ids, window.types))

    with ThreadPoolExecutor(threads) as pool:
        while windows := connection.recv():
            list(pool.map(read, windows))
            connection.send(None)


@contextmanager
def bare_reader_processes(graph: Path, processes: int, threads: int) -> Iterator[list[Connection]]:
    """Starts bare readers, each in a separate process; yields a connection to each."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(processes)]
    children = [
        context.Process(target=serve_bare_reader, args=(child_end, graph, threads))
        for _, child_end in pipes
    ]
    for child in children:
        child.start()
    connections = [parent_end for parent_end, _ in pipes]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.send([])
        for child in children:
            child.join()


class BareModels:
    """The models alone: encodes a question here, and reads passages in bare readers."""

    def __init__(self, bundle: Bundle) -> None:
        self._tokenizer = Tokenizer(bundle.tokenizer)
        self._encoder = open_question_encoder(bundle, self._tokenizer.special)
        self._reader_entry = bundle.manifest.reader

    def time_question(
        self,
        question: str,
        passages: Sequence[Sequence[answer_pb2.Passage]],
        readers: Sequence[Connection],
    ) -> float:
        """Returns the seconds to encode a question and then read the passages with all readers.

        Tokenising is not counted.
        """
        ids = self._tokenizer.tokenise(question).ids[:62]
        work = [
            (reader, [window for passage in own for window in self._windows(ids, passage)])
            for reader, own in zip(readers, passages, strict=True)
            if own
        ]
        started = time.perf_counter()
        self._encoder.question(ids)
        for reader, windows in work:
            reader.send(windows)
        for reader, _ in work:
            reader.recv()
        return time.perf_counter() - started

    def _windows(self, ids: tuple[int, ...], passage: answer_pb2.Passage) -> list[Window]:
        title, text = (self._tokenizer.tokenise(part).ids for part in (passage.title, passage.text))
        return build_windows(ids, title, text, self._tokenizer.special, self._reader_entry)


async def measure(
    address: str,
    models: BareModels,
    shard_readers: Sequence[Connection],
    single_reader: Sequence[Connection],
    questions: Sequence[str],
    passages: int,
) -> dict[str, list[float]]:
    """Returns the seconds of every question by variant, after one answer to each as a warm-up."""
    latencies: dict[str, list[float]] = {CLUSTER: [], BY_SHARD: [], ONE_PROCESS: []}
    async with AnswerClient(address) as client:
        replies = {each: await ask(client, each, passages) for each in questions}
        print(f"asked {len(replies)} questions once", file=sys.stderr, flush=True)
        for variant, question in interleaved(list(latencies), questions, BLOCK_SIZE):
            answers = replies[question].answers
            if variant == CLUSTER:
                started = time.perf_counter()
                await ask(client, question, passages)
                seconds = time.perf_counter() - started
            elif variant == BY_SHARD:
                by_shard = passages_by_shard(answers, len(shard_readers))
                seconds = models.time_question(question, by_shard, shard_readers)
            else:
                passages_read = [each.passage for each in answers]
                seconds = models.time_question(question, [passages_read], single_reader)
            latencies[variant].append(seconds)
    return latencies


async def ask(client: AnswerClient, question: str, passages: int) -> answer_pb2.AnswerResponse:
    """Asks a question; the reply has every passage that was read."""
    request = answer_pb2.AnswerRequest(
        question=question, passages_to_read=passages, answers=100, max_loss=0, fresh=True
    )
    return await client.ask(request, 30)


def passages_by_shard(
    answers: Iterable[answer_pb2.Answer], shards: int
) -> list[list[answer_pb2.Passage]]:
    """Returns the passages that each shard read."""
    by_shard: list[list[answer_pb2.Passage]] = [[] for _ in range(shards)]
    for each in answers:
        by_shard[each.shard].append(each.passage)
    return by_shard


def figures(latencies: Mapping[str, Sequence[float]]) -> list[Figure]:
    """Returns medians in milliseconds, and their ratios with the quartiles over the questions."""
    answer_p50 = median(latencies[CLUSTER])
    found = [
        Figure("overhead", "questions", len(latencies[CLUSTER])),
        Figure("overhead", "an answer, p50", 1e3 * answer_p50, "ms"),
    ]
    for variant in (BY_SHARD, ONE_PROCESS):
        bare_p50, name = median(latencies[variant]), f"bare models, {variant}"
        pairs = zip(latencies[CLUSTER], latencies[variant], strict=True)
        ratios = [answer / bare for answer, bare in pairs]
        quartiles = (nearest_rank(ratios, 0.25), nearest_rank(ratios, 0.75))
        found += [
            Figure("overhead", f"{name}, p50", 1e3 * bare_p50, "ms"),
            Figure("overhead", f"an answer / {name}, p50", answer_p50 / bare_p50, "times",
                   spread=quartiles),
        ]  # fmt: skip
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench overhead`."""
    add_index_and_questions(parser)
    parser.add_argument("--limit", type=int, default=300, help="maximum number of questions")
    parser.add_argument("--passages", type=int, default=10, help="passages read for a question")
    parser.add_argument(
        "--reader-threads", type=int, default=cores(), help="reader threads of each content node"
    )
    parser.add_argument(
        "--one-process", action="store_true", help="serve the index with one process"
    )


def run(options: argparse.Namespace) -> int:
    """Measures and prints the figures; returns the exit code."""
    bundle = load_bundle(default_bundle().parent / "whole")
    threads = options.reader_threads
    plan = LocalPlan(
        options.index,
        bundle.directory,
        "127.0.0.1:0",
        reader_threads=threads,
        one_process=options.one_process,
    )
    shards = len(list(options.index.glob("shard-*")))
    questions = read_question_texts(options.questions, options.limit)
    with (
        LocalCluster(plan) as cluster,
        bare_reader_processes(bundle.reader, shards, threads) as shard_readers,
        bare_reader_processes(bundle.reader, 1, cores()) as single_reader,
    ):
        cluster.start()
        asyncio.run(cluster.wait_ready())
        latencies = asyncio.run(
            measure(
                cluster.address,
                BareModels(bundle),
                shard_readers,
                single_reader,
                questions,
                options.passages,
            )
        )
    return print_figures(figures(latencies), as_json=options.json)
