"""Compares an index served by one process with the same index served by content nodes.

    python -m bench one-process --index INDEX --questions FILE [--against HOST:PORT] [--json]

The content nodes are started with a front node of their own, one for each shard. With --against
they are those of a running front node, such as one of an earlier version. Both serve the same
index, idle except for the question that is asked. Each question is asked of both in turn by one
client, with early stopping (the default) and with ten passages read. The memory is that of all
started processes after the last question.
"""

import argparse
import asyncio
import contextlib
from functools import partial
from pathlib import Path

from bench.figures import Figure, at_most, print_figures, quantile_figures, ratio_figure
from bench.inputs import add_index_and_questions, read_question_texts
from bench.interleaving import interleaved_latencies
from bench.processes import resident_bytes
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client.messages import AnswerClient
from winnow.packaged import default_bundle
from winnow.v1 import answer_pb2

_NODES, _ONE = "content nodes", "one process"
_KINDS = {"stopping": (None, 0.55, 0.6), "ten read": (0.0, 0.65, 0.65)}
"""Maximum loss (None for the default) and the targets for the ratios of p50 and p95, by kind."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench one-process`."""
    add_index_and_questions(parser)
    parser.add_argument("--limit", type=int, default=200, help="maximum number of questions")
    parser.add_argument(
        "--against",
        default="",
        metavar="HOST:PORT",
        help="address of a running front node whose content nodes to compare with",
    )


def run(options: argparse.Namespace) -> int:
    """Measures and prints the figures; returns the exit code."""
    questions = read_question_texts(options.questions, options.limit)
    kinds = {_ONE: True} if options.against else {_NODES: False, _ONE: True}
    with contextlib.ExitStack() as stack:
        clusters = {
            name: stack.enter_context(LocalCluster(_plan(options.index, one_process=one_process)))
            for name, one_process in kinds.items()
        }
        for cluster in clusters.values():
            cluster.start()
            asyncio.run(cluster.wait_ready())
        addresses = {_NODES: options.against} if options.against else {}
        addresses |= {name: cluster.address for name, cluster in clusters.items()}
        figures = asyncio.run(_measure(addresses, questions))
        memory = {n: resident_bytes(each.processes.pids()) / 1e6 for n, each in clusters.items()}
    figures += [Figure("memory", name, size, "MB") for name, size in memory.items()]
    if _NODES in memory:
        ratio = Figure("memory", f"{_ONE} / {_NODES}", memory[_ONE] / memory[_NODES], "times")
        figures.append(at_most(ratio, 0.5))
    return print_figures(figures, as_json=options.json)


def _plan(index: Path, *, one_process: bool) -> LocalPlan:
    return LocalPlan(index, default_bundle(), "127.0.0.1:0", one_process=one_process)


async def _measure(addresses: dict[str, str], questions: list[str]) -> list[Figure]:
    figures: list[Figure] = []
    async with contextlib.AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(AnswerClient(address))
            for name, address in addresses.items()
        }
        for kind, (max_loss, p50, p95) in _KINDS.items():
            asks = {name: partial(_ask, each, max_loss) for name, each in clients.items()}
            await interleaved_latencies(asks, questions[:10])  # warm
            latencies = await interleaved_latencies(asks, questions)
            for name, seconds in latencies.items():
                figures += quantile_figures(kind, name, seconds, 0.5, 0.95)
            for level, limit in ((0.5, p50), (0.95, p95)):
                name = f"{_ONE} / {_NODES}, p{level * 100:g}"
                ratio = ratio_figure(kind, name, latencies[_ONE], latencies[_NODES], level)
                figures.append(at_most(ratio, limit))
    return figures


async def _ask(client: AnswerClient, max_loss: float | None, question: str) -> None:
    request = answer_pb2.AnswerRequest(question=question, max_loss=max_loss, fresh=True)
    await client.ask(request, 30)
