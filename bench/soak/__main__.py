"""Whether content nodes that are asked, fed and merged for a long time stay as large as they were.

    python -m bench.soak [--minutes 60] [--merge-every 60] [--csv soak.csv]

Builds a shard of made-up passages, starts a node on each of `--nodes` copies of it, asks and feeds
all of them, and so has each merged every `--merge-every` seconds. Every `--sample` seconds it looks
at the memory of each node (Linux: RSS, and the anonymous part of it). Then it lets the nodes rest
for `--rest` seconds and looks again. Exits with 1 if the anonymous memory of a node has grown by
more than `--bar` after the first `--settled` minutes.
"""

import argparse
import asyncio
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.common import gauges
from bench.common.arguments import parser
from bench.common.figures import Figure, show
from bench.soak.load import Load
from bench.soak.made_up import make_shard, writes
from bench.soak.memory import Sample, growth, held, write_csv
from winnow import signals
from winnow.bundle import default_bundle, load_bundle
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.rpc.channel import open_channel

_LOOK = 0.5
_ASKERS = 2
_APPLIED = 0.75
"""Share of the writes that change something: others delete what is not there."""
_PAUSE = 0.2
"""Seconds between two questions of one asker."""


class Node:
    """A content node, and what it is to do."""

    def __init__(self, processes: Processes, number: int, shard: Path, each: int) -> None:
        port, metrics = free_ports(2)
        after = int(each * _APPLIED)
        self.number, self._processes, self._name = number, processes, f"node {number}"
        self.address, self._metrics = f"127.0.0.1:{port}", f"127.0.0.1:{metrics}"
        processes.start(
            self._name,
            [
                *("node", "--shard", str(shard), "--listen", self.address, "--feed"),
                *("--metrics-listen", self._metrics, "--log-level", "error"),
                *("--merge-after", str(after), "--max-unmerged", str(2 * after)),
            ],
        )

    async def ready(self) -> None:
        """Waits until it serves."""
        while await self._total("winnow_node_ready") != 1:  # noqa: ASYNC110 (another process)
            await asyncio.sleep(_LOOK)

    async def sample(self, began: float) -> Sample:
        """What it holds now."""
        rss, anonymous = held(self._processes.pid(self._name))
        merges = await self._total("winnow_node_merges_total", result="done")
        return Sample(round(time.monotonic() - began, 1), self.number, rss, anonymous, int(merges))

    async def _total(self, name: str, **labels: str) -> float:
        try:
            return gauges.total(await gauges.fetch(self._metrics), name, **labels)
        except OSError:
            return 0.0


async def soak(options: argparse.Namespace, shard: Path, processes: Processes) -> list[Sample]:
    """All samples of all nodes."""
    each = max(options.passages // 40, 200)
    copies = [shard, *(Path(f"{shard}-{number}") for number in range(1, options.nodes))]
    for copy in copies[1:]:
        shutil.copytree(shard, copy)
    nodes = [Node(processes, number, copy, each) for number, copy in enumerate(copies)]
    await asyncio.gather(*(node.ready() for node in nodes))
    began, samples = time.monotonic(), []
    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as looks:
        channels = [await stack.enter_async_context(open_channel(n.address)) for n in nodes]
        loads = [Load(ch, n.address, _encoding()) for ch, n in zip(channels, nodes, strict=True)]
        looking = [looks.create_task(load.look()) for load in loads]
        async with asyncio.TaskGroup() as group:
            busy = [task for load in loads for task in _begin(group, load, options, each)]
            while time.monotonic() - began < options.minutes * 60:
                await asyncio.sleep(options.sample)
                samples += await _told(nodes, began)
                write_csv(options.csv, samples)
            for task in busy:
                task.cancel()
        print(*(load.counts for load in loads), sep="\n", file=sys.stderr)
        await asyncio.sleep(options.rest)
        samples += await _told(nodes, began)
        write_csv(options.csv, samples)
        for task in looking:
            task.cancel()
    return samples


def _begin(
    group: asyncio.TaskGroup, load: Load, options: argparse.Namespace, each: int
) -> Iterator[asyncio.Task[None]]:
    """Begins to ask and to feed a node: `each` writes in the time between two merges."""
    for seed in range(_ASKERS):
        yield group.create_task(load.ask(seed, _PAUSE))
    fed = writes(options.passages, seed=0)
    yield group.create_task(load.feed(fed, each / options.merge_every))


def _encoding() -> str:
    return load_bundle(default_bundle()).manifest.encoding_fingerprint


async def _told(nodes: Sequence[Node], began: float) -> list[Sample]:
    found = [await node.sample(began) for node in nodes]
    shown = (f"{s.anonymous_mb:4.0f} of {s.rss_mb:4.0f} MB, {s.merges:3}" for s in found)
    print(f"{found[0].seconds:6.0f} s   {'   '.join(shown)}", file=sys.stderr)
    return found


def judged(samples: Sequence[Sample], options: argparse.Namespace) -> list[Figure]:
    """How much memory each node held, and by how much it grew."""
    figures = []
    for node in range(options.nodes):
        own = [each for each in samples if each.node == node]
        grown = growth(own, options.settled * 60, options.minutes * 60)
        row, wanted = f"node {node}", f"at most {options.bar:.0%}"
        figures += [
            Figure(row, "anonymous memory at the start", own[0].anonymous_mb, "MB"),
            Figure(row, "anonymous memory at rest", own[-1].anonymous_mb, "MB"),
            Figure(row, "merges", own[-1].merges, ""),
            Figure(row, f"growth after {options.settled:g} minutes", 100 * grown, "%",
                   wanted=wanted, holds=grown <= options.bar),
        ]  # fmt: skip
    return figures


def main() -> int:
    """Measures; the exit code."""
    arguments = parser("soak", __doc__)
    arguments.add_argument("--minutes", type=float, default=60.0, help="that the load lasts")
    arguments.add_argument("--settled", type=float, default=10.0, help="minutes not judged")
    arguments.add_argument("--merge-every", type=float, default=60.0, help="seconds, of each node")
    arguments.add_argument("--nodes", type=int, default=3)
    arguments.add_argument("--passages", type=int, default=19_000, help="of each node")
    arguments.add_argument("--sample", type=float, default=5.0, help="seconds between two looks")
    arguments.add_argument("--rest", type=float, default=15.0, help="seconds, at the end")
    arguments.add_argument("--bar", type=float, default=0.1, help="most growth, as a share")
    arguments.add_argument("--csv", type=Path, default=Path("soak.csv"), help="all samples")
    arguments.add_argument("--scratch", type=Path, help="directory for the shards")
    options = arguments.parse_args()
    signals.end_on_signals()
    with tempfile.TemporaryDirectory(prefix="winnow-soak-", dir=options.scratch) as place:
        shard = make_shard(Path(place), load_bundle(default_bundle()), options.passages)
        with Processes() as processes:
            figures = judged(asyncio.run(soak(options, shard, processes)), options)
    return show(figures, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
