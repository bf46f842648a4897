"""Compares the memory of many small indexes with that of one index with as many passages.

    python -m bench indexes [--indexes 100] [--passages 1000] [--nodes 3]

Makes synthetic passages and vectors. Serves `--indexes` indexes of one shard with `--passages`
passages each, evenly on `--nodes` content nodes, with a front that follows their catalog. Then
serves one index with all passages, in one shard for each node, in the same way. In both clusters,
each node takes writes, and the front is asked `--questions` questions for each small index.

Reads the memory of the processes without mapped files (Linux). Then counts the polls of each node,
while no index gets requests and while all of them do. Targets: the nodes with many indexes take at
most 1.3 times the memory of those with one.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from bench import processes
from bench.figures import Figure, at_most, print_figures
from bench.started_cluster import start_cluster
from bench.synthetic import SyntheticEncoder, build_shards
from winnow.bundle import load_bundle
from winnow.catalog import CatalogFile
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.client import AsyncClient
from winnow.content_node.composing.node_indexes import index_directory
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.write import EncodedPassage
from winnow.errors import WinnowError
from winnow.packaged import default_bundle
from winnow.policy.byte_bounded_lru import MIB
from winnow.stateless.cluster.polling import QUIET_SECONDS

MAX_RATIO = 1.3
_ENCODER = SyntheticEncoder(384, 30_522)
_WORDS = 60
"""Number of words of a passage."""
_HOST = "127.0.0.1"
_READY_SECONDS = 600.0
_POLLS_SECONDS = 20.0
"""Seconds in which polls are counted."""
_REST_SECONDS = 10.0
"""Seconds after the questions until the memory is read."""


def _passages(first: int, count: int) -> Iterator[EncodedPassage]:
    """Yields passages with random words, which depend only on their numbers."""
    for number in range(first, first + count):
        rng = random.Random(number)
        words = " ".join(f"w{rng.randrange(20_000)}" for _ in range(_WORDS))
        yield _ENCODER.passage(f"p{number}", words)


class SyntheticIndexes:
    """Indexes in the data directories of nodes, and their catalog."""

    def __init__(self, root: Path, nodes: int) -> None:
        """`root` is an empty directory."""
        self.root, self._manifest = root, load_bundle(default_bundle()).manifest
        ports = [f"{_HOST}:{port}" for port in free_ports(2 * nodes)]
        self.nodes = {f"node-{n}": address for n, address in enumerate(ports[:nodes])}
        self.metrics = dict(zip(self.nodes, ports[nodes:], strict=True))
        """The address of the metrics of each node, by its name."""
        self.catalog = CatalogFile(str(root / "indexes.json"))
        self.names: list[str] = []

    def add(self, name: str, first: int, count: int, holders: Mapping[int, str]) -> None:
        """Builds an index; `holders` has the node of each shard."""
        work = self.root / "work"
        work.mkdir()
        shards = build_shards(
            work,
            _passages(first, count),
            len(holders),
            index=name,
            dimension=_ENCODER.dimension,
            bundle=self._manifest.name,
            fingerprint=self._manifest.encoding_fingerprint,
            ef_construction=100,
        )
        for directory, node in zip(shards, holders.values(), strict=True):
            data = index_directory(self.root / node, name)
            data.mkdir(parents=True)
            directory.rename(data / directory.name)
        work.rmdir()
        entry = CatalogIndex(
            index_id=name,
            shards=len(holders),
            holders={shard: (node,) for shard, node in holders.items()},
        )
        self.catalog.change(
            lambda before: (before or Catalog()).with_index(name, entry, self.nodes)
        )
        self.names.append(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCost:
    """What a cluster took to serve its indexes."""

    nodes: int
    """Bytes of all nodes."""
    front: int
    """Bytes of the front."""
    idle_polls: float
    """Polls of each node per second, while no index gets requests."""
    busy_polls: float
    """Polls of each node per second, while all indexes get requests."""


async def _serve(indexes: SyntheticIndexes, questions: int) -> ClusterCost:
    """Serves indexes and asks questions; returns what that took."""
    listen = f"{_HOST}:{free_ports(1)[0]}"
    with Processes() as children:
        following = ["--indexes", indexes.catalog.url]
        start_cluster(
            children,
            indexes.nodes,
            indexes.root,
            listen=listen,
            node_flags=following,
            front_flags=[*following, "--answer-cache-mb", "0"],
            metrics=indexes.metrics,
        )
        started = time.monotonic()
        for number in range(questions):
            name = indexes.names[number % len(indexes.names)]
            async with AsyncClient(listen, index=name) as client:
                await _ask(client, f"Where is w{number} now?", started + _READY_SECONDS)
        print(f"asked in {time.monotonic() - started:.0f} s", file=sys.stderr)
        await asyncio.sleep(_REST_SECONDS)
        front_pid = children.pid("front")
        others = [each for each in children.pids() if each != front_pid]
        nodes, front = processes.anonymous_bytes(others), processes.anonymous_bytes([front_pid])
        idle_polls = await _polls_per_second(indexes)
        requests = asyncio.create_task(_keep_busy(listen, indexes.names))
        await asyncio.sleep(QUIET_SECONDS)  # until all indexes got a request
        busy_polls = await _polls_per_second(indexes)
        requests.cancel()
        await asyncio.gather(requests, return_exceptions=True)
        return ClusterCost(nodes=nodes, front=front, idle_polls=idle_polls, busy_polls=busy_polls)


async def _keep_busy(listen: str, names: Sequence[str]) -> None:
    """Counts the passages of all indexes again and again, until cancelled."""

    async def count(client: AsyncClient) -> None:
        with suppress(WinnowError):
            await client.count_passages(timeout=30.0)

    async with AsyncExitStack() as stack:
        clients = [AsyncClient(listen, index=name) for name in names]
        for client in clients:
            await stack.enter_async_context(client)
        while True:
            await asyncio.gather(*map(count, clients))
            await asyncio.sleep(QUIET_SECONDS / 5)


async def _polls_per_second(indexes: SyntheticIndexes) -> float:
    before, started = await _polls(indexes), time.monotonic()
    await asyncio.sleep(_POLLS_SECONDS)
    after, ended = await _polls(indexes), time.monotonic()
    return (after - before) / (ended - started) / len(indexes.nodes)


async def _polls(indexes: SyntheticIndexes) -> float:
    """Returns the number of polls of all nodes since their start."""
    pages = await asyncio.gather(*map(processes.fetch_metrics, indexes.metrics.values()))
    name = "winnow_request_seconds_count"
    return sum(processes.metric_sum(page, name, method="ListShards") for page in pages)


async def _ask(client: AsyncClient, question: str, until: float) -> None:
    """Asks until the answer is complete; raises TimeoutError if it is not by then."""
    while True:
        try:
            reply = await client.ask(question, passages_to_read=2, timeout=30.0)
            if reply.coverage.complete:
                return
        except WinnowError:
            pass
        if time.monotonic() > until:
            raise TimeoutError("the indexes were not served in time")
        await asyncio.sleep(0.2)


async def measure(options: argparse.Namespace, root: Path) -> list[Figure]:
    """Serves many indexes, and then one; returns the figures."""
    count, size = options.indexes, options.passages
    many, one = (SyntheticIndexes(_made(root / each), options.nodes) for each in ("many", "one"))
    names = list(many.nodes)
    for number in range(count):
        many.add(f"i{number}", number * size, size, {0: names[number % len(names)]})
    one.add("one", 0, count * size, dict(enumerate(names)))
    asked = count * options.questions
    many_served, one_served = [await _serve(each, asked) for each in (many, one)]
    ratio = many_served.nodes / one_served.nodes
    everything = (many_served.nodes + many_served.front) / (one_served.nodes + one_served.front)
    figures = [at_most(Figure("nodes", "memory, many indexes to one", ratio, "times"), MAX_RATIO)]
    for served, name in ((many_served, f"{count} indexes"), (one_served, "one index")):
        figures += [
            Figure("nodes", f"memory with {name}", served.nodes / MIB, "MiB"),
            Figure("front", f"memory with {name}", served.front / MIB, "MiB"),
            Figure("polls", f"of each node with {name}, idle", served.idle_polls, "per s"),
            Figure("polls", f"of each node with {name}, busy", served.busy_polls, "per s"),
        ]
    return [*figures, Figure("all", "memory, many indexes to one", everything, "times")]


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench indexes`."""
    parser.add_argument("--indexes", type=int, default=100, help="number of small indexes")
    parser.add_argument("--passages", type=int, default=1_000, help="passages of a small index")
    parser.add_argument("--nodes", type=int, default=3, help="number of content nodes")
    parser.add_argument("--questions", type=int, default=2, help="questions for each small index")
    parser.add_argument("--scratch", type=Path, help="directory for the indexes")


def run(options: argparse.Namespace) -> int:
    """Measures both clusters; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="winnow-indexes-", dir=options.scratch) as directory:
        figures = asyncio.run(measure(options, Path(directory)))
        return print_figures(figures, as_json=options.json)
