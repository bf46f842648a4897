"""Checks that content nodes under load for a long time take no more memory than before.

    python -m bench soak [--minutes 60] [--merge-every 60] [--csv soak.csv]

Builds a shard of synthetic passages and starts a node on each of `--nodes` copies of it. Asks and
feeds all of them, so that each merges every `--merge-every` seconds. Every `--sample` seconds it
reads the memory of each node (Linux: RSS, and the anonymous part of it). Then it lets the nodes
rest for `--rest` seconds and reads it again. Exits with 1 if the anonymous memory of a node has
grown by more than `--bar` after the first `--settled` minutes.
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
from bench.figures import Figure, show
from bench.synthetic import SyntheticEncoder, build_shard
from winnow.bundle import default_bundle, load_bundle
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.write import Write
from winnow.errors import WinnowError
from winnow.rpc.channel import open_channel
from winnow.stateless.feed.remote import RemoteShardWriter
from winnow.stateless.replicas.remote import RemoteSearcher

_INDEX = "soak"
_ENCODER = SyntheticEncoder(384, 30_522)
_WORDS = 100
"""Words of a passage."""
_ADDED = 0.25
"""Most passages that writes add, as a share of the passages of the shard."""
_APPLIED = 0.75
"""Share of the writes that change something; others delete a passage that is not there."""
_DEADLINE, _POLL = 2.0, 0.5
_CLIENTS, _PAUSE = 2, 0.2
"""Clients of a node, and the seconds that one waits between two questions."""
_BATCH = 50
"""Writes in one call."""
_DEPTHS = (
    RetrievalDepth(passages=3, candidates=50),
    RetrievalDepth(passages=3, candidates=50, by_words=50),
    RetrievalDepth(passages=3, by_words=20),
    RetrievalDepth(passages=3, candidates=50, where="n >= 10"),
)
_PARTS = 10
"""Parts of the judged time that are compared: merges come and go within one part."""


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
    """A content node with its load."""

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

    async def ready(self) -> None:
        """Waits until the node serves."""
        while await self._total("winnow_node_ready") != 1:  # noqa: ASYNC110 (another process)
            await asyncio.sleep(_POLL)

    async def sample(self, began: float) -> Sample:
        """Reads the node's memory."""
        pids = [self._children.pid(self._name)]
        return Sample(
            seconds=round(time.monotonic() - began, 1),
            node=self.number,
            rss_mb=processes.memory(pids) / 1e6,
            anonymous_mb=processes.anonymous_memory(pids) / 1e6,
            merges=int(await self._total("winnow_node_merges_total", result="done")),
        )

    async def poll(self, searcher: RemoteSearcher) -> None:
        """Polls the node as fronts do, until cancelled."""
        while True:
            with contextlib.suppress(WinnowError):
                await searcher.info(Deadline.after(_DEADLINE))
            await asyncio.sleep(_POLL)

    async def ask(self, searcher: RemoteSearcher, seed: int) -> None:
        """Asks one question after the other, until cancelled."""
        rng = np.random.default_rng(seed)
        info = await searcher.info(Deadline.after(_DEADLINE))
        for depth in itertools.cycle(_DEPTHS):
            text = synthetic_text(rng, 8)
            question = EncodedQuestion(
                text="?",
                token_ids=_ENCODER.tokens(text),
                vector=_ENCODER.vector(text),
                bundle_fingerprint=info.bundle_fingerprint,
            )
            try:
                found = await searcher.retrieve(question, depth, Deadline.after(_DEADLINE))
                await searcher.read(question, found.hits[:1], 10, Deadline.after(_DEADLINE))
                self.counts["answered"] += 1
            except WinnowError:
                self.counts["failed"] += 1
            await asyncio.sleep(_PAUSE)

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
        source = writes(passages, seed=0)
        while True:
            batch = list(itertools.islice(source, _BATCH))
            try:
                await writer.write(batch, Deadline.after(_DEADLINE))
                self.counts["written"] += len(batch)
            except WinnowError:
                self.counts["failed"] += 1
            await asyncio.sleep(_BATCH / per_second)

    async def _total(self, name: str, **labels: str) -> float:
        try:
            return processes.total(await processes.fetch(self._metrics), name, **labels)
        except OSError:
            return 0.0


def synthetic_text(rng: np.random.Generator, words: int) -> str:
    """Returns words that are about as rare as those of real texts."""
    return " ".join(f"word-{number}" for number in np.minimum(rng.zipf(1.2, words), 30_000))


def make_shard(directory: Path, passages: int) -> Path:
    """Builds the only shard of an index; takes a minute for 20,000 passages."""
    manifest, rng = load_bundle(default_bundle()).manifest, np.random.default_rng(0)
    return build_shard(
        directory,
        [_ENCODER.passage(f"passage-{n}", synthetic_text(rng, _WORDS)) for n in range(passages)],
        index=_INDEX,
        dimension=_ENCODER.dimension,
        bundle=manifest.name,
        fingerprint=manifest.encoding_fingerprint,
        ef_construction=100,
    )


def writes(passages: int, seed: int) -> Iterator[Write]:
    """Yields writes without end: half replace passages, the others add and delete some.

    So the shard stays about as large as it is.
    """
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    while True:
        kind = chance.random()
        if kind < 0.5:
            name = f"passage-{chance.randrange(passages)}"
        else:
            name = f"fed-{chance.randrange(int(passages * _ADDED))}"
        if kind > 0.75:
            yield Write(name)
        else:
            metadata = f'{{"n": {chance.randrange(99)}}}'
            passage = _ENCODER.passage(name, synthetic_text(rng, _WORDS), metadata)
            yield Write(name, put=passage)


async def soak(options: argparse.Namespace, shard: Path, children: Processes) -> list[Sample]:
    """Runs the load; returns all samples of all nodes."""
    per_merge = max(options.passages // 40, 200)
    copies = [shard, *(Path(f"{shard}-{number}") for number in range(1, options.nodes))]
    for copy in copies[1:]:
        shutil.copytree(shard, copy)
    merge_after = int(per_merge * _APPLIED)
    nodes = [Node(children, number, copy, merge_after) for number, copy in enumerate(copies)]
    await asyncio.gather(*(node.ready() for node in nodes))
    began, samples = time.monotonic(), list[Sample]()
    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        polling, busy = [], []
        for node in nodes:
            channel = await stack.enter_async_context(open_channel(node.address))
            searcher = RemoteSearcher(channel, node.address)
            polling.append(group.create_task(node.poll(searcher)))
            busy += [group.create_task(node.ask(searcher, seed)) for seed in range(_CLIENTS)]
            rate = per_merge / options.merge_every
            busy.append(group.create_task(node.feed(channel, options.passages, rate)))
        while time.monotonic() - began < options.minutes * 60:
            await asyncio.sleep(options.sample)
            samples += await _sampled(nodes, began)
            write_csv(options.csv, samples)
        for task in busy:
            task.cancel()
        print(*(dict(node.counts) for node in nodes), sep="\n", file=sys.stderr)
        await asyncio.sleep(options.rest)
        samples += await _sampled(nodes, began)
        write_csv(options.csv, samples)
        for task in polling:
            task.cancel()
    return samples


async def _sampled(nodes: Sequence[Node], began: float) -> list[Sample]:
    found = [await node.sample(began) for node in nodes]
    shown = (f"{s.anonymous_mb:4.0f} of {s.rss_mb:4.0f} MB, {s.merges:3}" for s in found)
    print(f"{found[0].seconds:6.0f} s   {'   '.join(shown)}", file=sys.stderr)
    return found


def write_csv(path: Path, samples: Sequence[Sample]) -> None:
    """Writes samples with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow([field.name for field in fields(Sample)])
        out.writerows(map(astuple, samples))


def growth(samples: Sequence[Sample], settled: float, end: float) -> float:
    """Returns the growth of one node's anonymous memory from `settled` to `end` seconds.

    That time is cut into tenths. The largest median of a tenth is compared with that of the first
    one, as a share of it.

    Raises:
        ValueError: a tenth has no sample.

    """
    step = (end - settled) / _PARTS
    parts: list[list[float]] = [[] for _ in range(_PARTS)]
    for each in samples:
        if settled <= each.seconds <= end:
            parts[min(int((each.seconds - settled) / step), _PARTS - 1)].append(each.anonymous_mb)
    if not all(parts):
        raise ValueError(f"there are too few samples from {settled:g} s to {end:g} s")
    medians = [statistics.median(part) for part in parts]
    return max(medians) / medians[0] - 1


def judged(samples: Sequence[Sample], options: argparse.Namespace) -> list[Figure]:
    """Returns the memory of each node, and its growth."""
    figures = []
    for node in range(options.nodes):
        own = [each for each in samples if each.node == node]
        grown = growth(own, options.settled * 60, options.minutes * 60)
        row, wanted = f"node {node}", f"at most {options.bar:.0%}"
        figures += [
            Figure(row, "anonymous memory at the start", own[0].anonymous_mb, "MB"),
            Figure(row, "anonymous memory at rest", own[-1].anonymous_mb, "MB"),
            Figure(row, "merges", own[-1].merges),
            Figure(row, f"growth after {options.settled:g} minutes", 100 * grown, "%",
                   wanted=wanted, holds=grown <= options.bar),
        ]  # fmt: skip
    return figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench soak`."""
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the load")
    parser.add_argument("--settled", type=float, default=10.0, help="minutes that are not judged")
    parser.add_argument("--merge-every", type=float, default=60.0, help="seconds, for each node")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--passages", type=int, default=19_000, help="of each node")
    parser.add_argument("--sample", type=float, default=5.0, help="seconds between two samples")
    parser.add_argument("--rest", type=float, default=15.0, help="seconds of rest at the end")
    parser.add_argument("--bar", type=float, default=0.1, help="most growth, as a share")
    parser.add_argument("--csv", type=Path, default=Path("soak.csv"), help="file for all samples")
    parser.add_argument("--scratch", type=Path, help="directory for the shards")


def run(options: argparse.Namespace) -> int:
    """Runs the load and prints the figures; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="winnow-soak-", dir=options.scratch) as directory:
        shard = make_shard(Path(directory), options.passages)
        with Processes() as children:
            figures = judged(asyncio.run(soak(options, shard, children)), options)
    return show(figures, as_json=options.json)
