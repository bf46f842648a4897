"""Checks that the memory of content nodes does not grow under a long load.

    python -m bench soak [--minutes 60] [--merge-every 60] [--csv soak.csv]

Builds a shard of synthetic passages, and starts `--nodes` nodes that each serve a copy of the
shard. Sends questions and writes to all nodes, so that each merges every `--merge-every` seconds.
Reads the memory of each node every `--sample` seconds (RSS and anonymous memory, Linux only), and
once more `--rest` seconds after the load. Exits with 1 if the anonymous memory of a node grew by
more than `--bar` after the first `--settled` minutes.
"""

import argparse
import asyncio
import contextlib
import csv
import itertools
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import grpc
import numpy as np

from bench import processes
from bench.figures import Figure, print_figures
from bench.synthetic import SyntheticEncoder, build_shard
from winnow.bundle import load_bundle
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.deadline import Deadline
from winnow.domain.question import RetrievalDepth
from winnow.domain.write import Write
from winnow.errors import WinnowError
from winnow.packaged import default_bundle
from winnow.rpc.channel import open_channel
from winnow.shard_service.remote import RemoteShardWriter
from winnow.stateless.replicas.remote import RemoteNode, RemoteSearcher

_INDEX = "soak"
_ENCODER = SyntheticEncoder(384, 30_522)
_WORDS = 100
"""Number of words in a passage."""
_MAX_ADDED_SHARE = 0.25
"""Maximum number of passages that writes add, as a share of the shard's passages."""
_EFFECTIVE_SHARE = 0.75
"""Share of the writes that change the shard. The other writes delete passages that are missing."""
_DEADLINE_SECONDS, _POLL_SECONDS = 2.0, 0.5
_CLIENTS, _PAUSE_SECONDS = 2, 0.2
"""Number of clients per node, and seconds between two questions of a client."""
_BATCH = 50
"""Number of writes per call."""
_DEPTHS = (
    RetrievalDepth(passages=3, candidates=50),
    RetrievalDepth(passages=3, candidates=50, by_words=50),
    RetrievalDepth(passages=3, by_words=20),
    RetrievalDepth(passages=3, candidates=50, where="n >= 10"),
)
_PERIODS = 10
"""Number of periods whose memory is compared. In the default run, each has several merges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The memory of one node at one moment."""

    seconds: float
    """Seconds since the load began."""
    node: int
    rss_mb: float
    anonymous_mb: float
    merges: int


class Node:
    """A content node, and the load on it."""

    def __init__(self, children: Processes, number: int, shard: Path, merge_after: int) -> None:
        port, metrics = free_ports(2)
        self.number, self._children, self._name = number, children, f"node {number}"
        self.address, self._metrics = f"127.0.0.1:{port}", f"127.0.0.1:{metrics}"
        self.counts = Counter[str]()
        children.start(
            self._name,
            [
                *("node", "--shard", str(shard), "--listen", self.address, "--feed"),
                *("--metrics-listen", self._metrics, "--log-level", "error"),
                *("--merge-after", str(merge_after), "--max-unmerged", str(2 * merge_after)),
            ],
        )

    async def wait_ready(self) -> None:
        """Waits until the node serves."""
        while await self._metric_total("winnow_node_ready") != 1:  # noqa: ASYNC110 (another process)
            await asyncio.sleep(_POLL_SECONDS)

    async def sample(self, started: float) -> Sample:
        """Reads the node's memory."""
        pids = [self._children.pid(self._name)]
        return Sample(
            seconds=round(time.monotonic() - started, 1),
            node=self.number,
            rss_mb=processes.resident_bytes(pids) / 1e6,
            anonymous_mb=processes.anonymous_bytes(pids) / 1e6,
            merges=int(await self._metric_total("winnow_node_merges_total", result="done")),
        )

    async def poll(self, searcher: RemoteSearcher) -> None:
        """Requests the node's info at a front's polling rate, until cancelled."""
        while True:
            with contextlib.suppress(WinnowError):
                await searcher.info(Deadline.after(_DEADLINE_SECONDS))
            await asyncio.sleep(_POLL_SECONDS)

    async def ask(self, searcher: RemoteSearcher, seed: int) -> None:
        """Sends one question after the other to the node, to retrieve and read, until cancelled."""
        np_rng = np.random.default_rng(seed)
        info = await searcher.info(Deadline.after(_DEADLINE_SECONDS))
        for depth in itertools.cycle(_DEPTHS):
            text = synthetic_text(np_rng, 8)
            question = _ENCODER.question(text, info.bundle_fingerprint)
            try:
                deadline = Deadline.after(_DEADLINE_SECONDS)
                retrieved = await searcher.retrieve(question, depth, deadline)
                deadline = Deadline.after(_DEADLINE_SECONDS)
                await searcher.read(question, retrieved.hits[:1], deadline)
                self.counts["answered"] += 1
            except WinnowError:
                self.counts["failed"] += 1
            await asyncio.sleep(_PAUSE_SECONDS)

    async def feed(self, channel: grpc.aio.Channel, passages: int, per_second: float) -> None:
        """Sends writes at a steady rate, until cancelled."""
        fingerprint = load_bundle(default_bundle()).manifest.encoding_fingerprint
        writer = RemoteShardWriter(
            channel=channel,
            address=self.address,
            index_id=_INDEX,
            shard=0,
            fingerprint=fingerprint,
        )
        source = random_writes(passages, seed=0)
        while True:
            batch = list(itertools.islice(source, _BATCH))
            try:
                await writer.write(batch, Deadline.after(_DEADLINE_SECONDS))
                self.counts["written"] += len(batch)
            except WinnowError:
                self.counts["failed"] += 1
            await asyncio.sleep(_BATCH / per_second)

    async def _metric_total(self, name: str, **labels: str) -> float:
        try:
            return processes.metric_sum(
                await processes.fetch_metrics(self._metrics), name, **labels
            )
        except OSError:
            return 0.0


def synthetic_text(np_rng: np.random.Generator, words: int) -> str:
    """Returns random words with frequencies by a Zipf law, as in real texts."""
    return " ".join(f"word-{number}" for number in np.minimum(np_rng.zipf(1.2, words), 30_000))


def build_synthetic_shard(directory: Path, passages: int) -> Path:
    """Builds a shard of `passages` passages. 20,000 passages take a minute."""
    manifest, np_rng = load_bundle(default_bundle()).manifest, np.random.default_rng(0)
    return build_shard(
        directory,
        [_ENCODER.passage(f"passage-{n}", synthetic_text(np_rng, _WORDS)) for n in range(passages)],
        index=_INDEX,
        dimension=_ENCODER.dimension,
        bundle=manifest.name,
        fingerprint=manifest.encoding_fingerprint,
        ef_construction=100,
    )


def random_writes(passages: int, seed: int) -> Iterator[Write]:
    """Yields writes without end: half of them replace passages, the others add or delete passages.

    The size of the shard stays about the same.
    """
    rng, np_rng = random.Random(seed), np.random.default_rng(seed)
    while True:
        action = rng.random()
        if action < 0.5:
            name = f"passage-{rng.randrange(passages)}"
        else:
            name = f"fed-{rng.randrange(int(passages * _MAX_ADDED_SHARE))}"
        if action > 0.75:
            yield Write(name)
        else:
            metadata = f'{{"n": {rng.randrange(99)}}}'
            passage = _ENCODER.passage(name, synthetic_text(np_rng, _WORDS), metadata)
            yield Write(name, put=passage)


async def run_soak(options: argparse.Namespace, shard: Path, children: Processes) -> list[Sample]:
    """Runs the load; returns the samples of all nodes."""
    per_merge = max(options.passages // 40, 200)
    copies = [shard, *(Path(f"{shard}-{number}") for number in range(1, options.nodes))]
    for copy in copies[1:]:
        shutil.copytree(shard, copy)
    merge_after = int(per_merge * _EFFECTIVE_SHARE)
    nodes = [Node(children, number, copy, merge_after) for number, copy in enumerate(copies)]
    await asyncio.gather(*(node.wait_ready() for node in nodes))
    started, samples = time.monotonic(), list[Sample]()
    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        polling, busy = [], []
        for node in nodes:
            channel = await stack.enter_async_context(open_channel(node.address))
            searcher = RemoteNode(channel, node.address).searcher(None)
            polling.append(group.create_task(node.poll(searcher)))
            busy += [group.create_task(node.ask(searcher, seed)) for seed in range(_CLIENTS)]
            rate = per_merge / options.merge_every
            busy.append(group.create_task(node.feed(channel, options.passages, rate)))
        while time.monotonic() - started < options.minutes * 60:
            await asyncio.sleep(options.sample)
            samples += await _take_samples(nodes, started)
            write_csv(options.csv, samples)
        for task in busy:
            task.cancel()
        print(*(dict(node.counts) for node in nodes), sep="\n", file=sys.stderr)
        await asyncio.sleep(options.rest)
        samples += await _take_samples(nodes, started)
        write_csv(options.csv, samples)
        for task in polling:
            task.cancel()
    return samples


async def _take_samples(nodes: Sequence[Node], started: float) -> list[Sample]:
    samples = [await node.sample(started) for node in nodes]
    columns = (f"{s.anonymous_mb:4.0f} of {s.rss_mb:4.0f} MB, {s.merges:3}" for s in samples)
    print(f"{samples[0].seconds:6.0f} s   {'   '.join(columns)}", file=sys.stderr)
    return samples


def write_csv(path: Path, samples: Sequence[Sample]) -> None:
    """Writes samples as CSV with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow([field.name for field in fields(Sample)])
        out.writerows(map(astuple, samples))


def memory_growth(samples: Sequence[Sample], settled: float, end: float) -> float:
    """Returns the growth of one node's anonymous memory from `settled` to `end` seconds.

    Divides the time into ten periods, and takes the median of each. The growth is the largest
    median divided by the first median, minus one: 0.1 means 10 %.

    Raises:
        ValueError: a period has no sample.

    """
    step = (end - settled) / _PERIODS
    periods: list[list[float]] = [[] for _ in range(_PERIODS)]
    for each in samples:
        if settled <= each.seconds <= end:
            periods[min(int((each.seconds - settled) / step), _PERIODS - 1)].append(
                each.anonymous_mb
            )
    if not all(periods):
        raise ValueError(
            f"too few samples from {settled:g} s to {end:g} s: set a larger --minutes or a smaller "
            "--sample"
        )
    medians = [statistics.median(period) for period in periods]
    return max(medians) / medians[0] - 1


def growth_figures(samples: Sequence[Sample], options: argparse.Namespace) -> list[Figure]:
    """Returns figures of each node's memory and merges, and of the growth of its memory."""
    figures = []
    for node in range(options.nodes):
        own = [each for each in samples if each.node == node]
        growth_share = memory_growth(own, options.settled * 60, options.minutes * 60)
        row, target = f"node {node}", f"at most {options.bar:.0%}"
        figures += [
            Figure(row, "anonymous memory at the start", own[0].anonymous_mb, "MB"),
            Figure(row, "anonymous memory at rest", own[-1].anonymous_mb, "MB"),
            Figure(row, "merges", own[-1].merges),
            Figure(row, f"growth after {options.settled:g} minutes", 100 * growth_share, "%",
                   target=target, holds=growth_share <= options.bar),
        ]  # fmt: skip
    return figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench soak`."""
    parser.add_argument("--minutes", type=float, default=60.0, help="duration of the load")
    parser.add_argument(
        "--settled",
        type=float,
        default=10.0,
        help="minutes at the start that are left out when growth is measured",
    )
    parser.add_argument(
        "--merge-every", type=float, default=60.0, help="seconds between two merges of a node"
    )
    parser.add_argument("--nodes", type=int, default=3, help="number of content nodes")
    parser.add_argument("--passages", type=int, default=19_000, help="passages of each node")
    parser.add_argument("--sample", type=float, default=5.0, help="seconds between two samples")
    parser.add_argument("--rest", type=float, default=15.0, help="seconds without load at the end")
    parser.add_argument(
        "--bar", type=float, default=0.1, help="largest allowed growth; 0.1 means 10 %%"
    )
    parser.add_argument(
        "--csv", type=Path, default=Path("soak.csv"), help="CSV file for all samples"
    )
    parser.add_argument("--scratch", type=Path, help="directory for the shards")


def run(options: argparse.Namespace) -> int:
    """Runs the load and prints the figures; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="winnow-soak-", dir=options.scratch) as directory:
        shard = build_synthetic_shard(Path(directory), options.passages)
        with Processes() as children:
            figures = growth_figures(asyncio.run(run_soak(options, shard, children)), options)
    return print_figures(figures, as_json=options.json)
