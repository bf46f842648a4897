"""Compares an index served by one process with the same index served by content nodes.

    python -m bench one-process --index INDEX --questions FILE [--against HOST:PORT] [--json]

The content nodes are started with a front node of their own, one for each shard. With --against
they are those of a running front node, such as one of an earlier version. A third variant is the
index embedded in this program, without gRPC. All serve the same index.

Each question is asked of every variant in turn by one client, with early stopping (the default)
and with ten passages read. Then --clients clients ask as fast as they get answers, in rounds that
alternate between the content nodes and the one process. The memory is that of all started
processes after the last question.
"""

import argparse
import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure, at_least, at_most, print_figures, quantile_figures, ratio_figure
from bench.inputs import add_index_and_questions, read_question_texts
from bench.interleaving import interleaved, interleaved_latencies
from bench.processes import resident_bytes
from bench.quantiles import nearest_rank
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client.aio import AsyncClient, AsyncClientApi
from winnow.errors import OverloadedError
from winnow.packaged import default_bundle
from winnow.standalone.index import AsyncIndex

_NODES, _ONE, _EMBEDDED = "content nodes", "one process", "embedded"
_KINDS = {"stopping": (None, 0.55, 0.6, 1.4), "ten read": (0.0, 0.65, 0.65, 1.3)}
"""For each kind: the maximum loss (None for the default), and the targets for the ratios of p50,
p95 and questions per second.
"""
_ROUNDS = 5
"""Rounds of many clients for each variant. The spread of their ratios shows the uncertainty."""
_TIMEOUT, _RETRY_AFTER = 60.0, 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench one-process`."""
    add_index_and_questions(parser)
    parser.add_argument("--limit", type=int, default=200, help="maximum number of questions")
    parser.add_argument("--clients", type=int, default=8, help="number of clients under load")
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds of a round of load")
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
        figures = asyncio.run(_measure(addresses, questions, options))
        memory = {n: resident_bytes(each.processes.pids()) / 1e6 for n, each in clusters.items()}
    figures += [Figure("memory", name, size, "MB") for name, size in memory.items()]
    if _NODES in memory:
        ratio = Figure("memory", f"{_ONE} / {_NODES}", memory[_ONE] / memory[_NODES], "times")
        figures.append(at_most(ratio, 0.5))
    return print_figures(figures, as_json=options.json)


def _plan(index: Path, *, one_process: bool) -> LocalPlan:
    return LocalPlan(index, default_bundle(), "127.0.0.1:0", one_process=one_process)


async def _measure(
    addresses: Mapping[str, str], questions: list[str], options: argparse.Namespace
) -> list[Figure]:
    figures: list[Figure] = []
    async with contextlib.AsyncExitStack() as stack:
        callers: dict[str, AsyncClientApi] = {
            name: await stack.enter_async_context(AsyncClient(address))
            for name, address in addresses.items()
        }
        served = list(callers)
        callers[_EMBEDDED] = await stack.enter_async_context(AsyncIndex.open(options.index))
        for kind in _KINDS:
            variants = {name: _Variant(each, kind) for name, each in callers.items()}
            asks = {name: each.ask for name, each in variants.items()}
            await interleaved_latencies(asks, questions[:10])  # warm
            figures += _latencies(kind, variants, await interleaved_latencies(asks, questions))
            rates = await _rates({name: asks[name] for name in served}, questions, options)
            figures += _throughput(kind, rates)
    return figures


class _Variant:
    """Asks one of the compared systems, and notes its times of retrieval."""

    def __init__(self, calls: AsyncClientApi, kind: str) -> None:
        self._calls, self._max_loss = calls, _KINDS[kind][0]
        self.retrievals: list[float] = []
        """Seconds from the first retrieval sent to the last one received."""

    async def ask(self, question: str) -> None:
        reply = await self._calls.ask(
            question, max_loss=self._max_loss, fresh=True, timeout=_TIMEOUT
        )
        self.retrievals.append(reply.timings.retrieve_ms / 1e3)


def _latencies(
    kind: str, variants: Mapping[str, _Variant], latencies: Mapping[str, list[float]]
) -> list[Figure]:
    _, p50, p95, _ = _KINDS[kind]
    figures = []
    for name, seconds in latencies.items():
        figures += quantile_figures(kind, name, seconds, 0.5, 0.95)
        retrievals = variants[name].retrievals[-len(seconds) :]
        figures += quantile_figures(kind, f"{name}, retrieval", retrievals, 0.5, 0.99)
    for level, limit in ((0.5, p50), (0.95, p95)):
        name = f"{_ONE} / {_NODES}, p{level * 100:g}"
        ratio = ratio_figure(kind, name, latencies[_ONE], latencies[_NODES], level)
        figures.append(at_most(ratio, limit))
    spread = nearest_rank(latencies[_ONE], 0.95) / nearest_rank(latencies[_ONE], 0.5)
    figures.append(Figure(kind, f"{_ONE}, p95 / p50", spread, "times"))
    differences = [
        (grpc - embedded) * 1e3
        for grpc, embedded in zip(latencies[_ONE], latencies[_EMBEDDED], strict=True)
    ]
    return [*figures, Figure(kind, f"{_ONE} - {_EMBEDDED}, median", median(differences), "ms")]


async def _rates(
    asks: Mapping[str, Callable[[str], Coroutine[Any, Any, None]]],
    questions: list[str],
    options: argparse.Namespace,
) -> dict[str, list[float]]:
    """Questions per second of each variant in each round."""
    rates: dict[str, list[float]] = {name: [] for name in asks}
    remaining = cycle(questions)
    for name, _ in interleaved(list(asks), range(_ROUNDS)):
        started = time.perf_counter()
        end = started + options.seconds
        clients = [_keep_asking(asks[name], remaining, end) for _ in range(options.clients)]
        answered = sum(await asyncio.gather(*clients))
        rates[name].append(answered / (time.perf_counter() - started))
    return rates


async def _keep_asking(
    ask: Callable[[str], Coroutine[Any, Any, None]], questions: Iterator[str], end: float
) -> int:
    """Asks one question after the other until `end`; returns the number of answers.

    A full front refuses questions, and says when to try again.
    """
    answered = 0
    while time.perf_counter() < end:
        try:
            await ask(next(questions))
        except OverloadedError as error:
            await asyncio.sleep(error.retry_after or _RETRY_AFTER)
        else:
            answered += 1
    return answered


def _throughput(kind: str, rates: Mapping[str, list[float]]) -> list[Figure]:
    figures = [
        Figure(kind, f"{name}, under load", median(each), "q/s", spread=(min(each), max(each)))
        for name, each in rates.items()
    ]
    ratios = [one / nodes for one, nodes in zip(rates[_ONE], rates[_NODES], strict=True)]
    ratio = Figure(
        kind,
        f"{_ONE} / {_NODES}, under load",
        median(ratios),
        "times",
        spread=(min(ratios), max(ratios)),
    )
    return [*figures, at_least(ratio, _KINDS[kind][3])]
