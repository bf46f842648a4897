"""Rebuilds an index under questions and writes, and kills the commands during the rebuild.

    python -m bench rebuilds --index INDEX --bundle BUNDLE --questions FILE [--kills 10]

Serves a copy of INDEX by an alias. Runs `winnow indexes rebuild` with BUNDLE, and then `winnow
indexes alias`, to the new index and back. One client asks and one client writes at the same time,
both by the alias. `--kills` is the number of times that each of the commands is killed with SIGKILL
at a random moment, and run again. At the end every acknowledged write is sent again, before and
after one more switch: the index must report it as unchanged.

Targets: every answer is complete and of the index for which the alias stands, and no acknowledged
write is lost.
"""

import argparse
import asyncio
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench.figures import Figure, print_figures, quantile_figures
from bench.inputs import add_index_and_questions, read_question_texts
from bench.moves import Writer
from bench.outcomes import QuestionOutcomes
from bench.started_cluster import start_cluster
from winnow.catalog import CatalogFile
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.client import AsyncClient, Coverage, ShardStatus
from winnow.content_node.composing.node_indexes import index_directory
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.errors import WinnowError
from winnow.index_directory import shard_directories

_ALIAS, _OLD, _NEW = "docs", "docs-1", "docs-2"
_HOST, _NODE = "127.0.0.1", "node-0"
_READY_SECONDS = 120.0
_POLL_SECONDS = 0.2
_HELD = re.compile(r"writes were held back for ([0-9.]+) s")


class NamedIndexCluster:
    """A node and a front that follow a catalog, in processes, with one index and its alias."""

    def __init__(self, children: Processes, index: Path, scratch: Path) -> None:
        node, self.address, self.feed = (f"{_HOST}:{port}" for port in free_ports(3))
        self._catalog, data = str(scratch / "indexes.json"), scratch / _NODE
        self.snapshots = str(scratch / "snapshots")
        manifest = read_index_manifest(index)
        for shard in shard_directories(index):
            shutil.copytree(shard, index_directory(data, manifest.index_id) / shard.name)
        entry = CatalogIndex(
            index_id=manifest.index_id,
            shards=manifest.shards,
            holders=dict.fromkeys(range(manifest.shards), (_NODE,)),
        )
        named = Catalog().with_index(_OLD, entry, {_NODE: node}).with_alias(_ALIAS, _OLD)
        CatalogFile(self._catalog).change(lambda _: named)
        following = ["--indexes", self._catalog]
        start_cluster(
            children,
            {_NODE: node},
            scratch,
            listen=self.address,
            feed=self.feed,
            node_flags=following,
            front_flags=following,
        )

    async def wait_ready(self) -> None:
        """Waits until a question by the alias is answered."""
        async with asyncio.timeout(_READY_SECONDS), AsyncClient(self.address, index=_ALIAS) as own:
            while True:
                with suppress(WinnowError):
                    await own.ask("ready?")
                    return
                await asyncio.sleep(_POLL_SECONDS)

    async def change(self, *words: str, kill_after: float | None = None) -> str | None:
        """Runs `winnow indexes`; returns its output. Kills it after `kill_after` seconds, unless it
        has ended by then; then returns None.

        Raises RuntimeError if it fails.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "winnow", "indexes", *words, "--indexes", self._catalog),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        reading = asyncio.ensure_future(process.communicate())
        if kill_after is not None:
            await asyncio.wait([reading], timeout=kill_after)
            if not reading.done():
                process.kill()
        printed = (await reading)[0].decode()
        if process.returncode == -signal.SIGKILL:
            return None
        if process.returncode:
            raise RuntimeError(printed)
        return printed


class Asker:
    """Asks questions by the alias, and records which index answered in which generation."""

    def __init__(self, client: AsyncClient, questions: Sequence[str]) -> None:
        self._client, self._questions, self._asked = client, questions, 0
        self.answering: defaultdict[int | None, set[str | None]] = defaultdict(set)
        """The indexes that answered, by the generation of the alias."""

    async def ask(self, series: QuestionOutcomes) -> None:
        """Asks the next question."""
        question = self._questions[self._asked % len(self._questions)]
        self._asked += 1
        started = time.perf_counter()
        try:
            reply = await self._client.ask(question, fresh=True)
            outcome = _outcome(reply.coverage)
            if outcome != "complete":
                seconds = time.perf_counter() - started
                print(f"{outcome}, after {seconds:.1f} s: {reply.coverage}", file=sys.stderr)
            self.answering[reply.generation].add(reply.index)
        except WinnowError as error:
            outcome = type(error).__name__
            print(f"question failed: {error}", file=sys.stderr)
        series.outcomes[outcome] += 1
        series.latencies.append(time.perf_counter() - started)

    async def ask_until(self, done: "asyncio.Future[None]", series: QuestionOutcomes) -> None:
        """Asks until `done`."""
        while not done.done():
            await self.ask(series)

    @property
    def mixed(self) -> int:
        """Number of generations of the alias in which several indexes answered."""
        return sum(len(names) > 1 for names in self.answering.values())


def _outcome(coverage: Coverage) -> str:
    """Returns `complete`, or `incomplete` with the status of each shard that was not searched."""
    missing = {part.status for part in coverage.shards if part.status is not ShardStatus.SEARCHED}
    if coverage.complete:
        return "complete"
    return f"incomplete ({', '.join(sorted(each.value for each in missing))})"


class Rebuilds:
    """Runs the commands, with kills."""

    def __init__(self, cluster: NamedIndexCluster, options: argparse.Namespace) -> None:
        self._cluster, self._kills = cluster, options.kills
        self._rng = random.Random(options.seed)
        self.killed = 0
        self.held: list[float] = []
        """Seconds in which no writes were taken, of each switch."""
        bundle = str(options.bundle)
        self._rebuild = ["rebuild", _ALIAS, "--bundle", bundle, "--as", _NEW]
        self._rebuild += ["--snapshot", cluster.snapshots]

    async def rebuild(self) -> None:
        """Copies the index."""
        await self._run(self._rebuild)

    async def switch(self, index: str) -> None:
        """Switches the alias to an index."""
        printed = await self._run(["alias", _ALIAS, index])
        self.held += [float(each) for each in _HELD.findall(printed)]

    async def _run(self, words: Sequence[str]) -> str:
        longest = 4.0
        for _ in range(self._kills):
            started = time.monotonic()
            printed = await self._cluster.change(*words, kill_after=self._rng.uniform(0, longest))
            if printed is not None:
                longest = time.monotonic() - started
                return printed
            self.killed += 1
            longest *= 1.3
        return await self._cluster.change(*words) or ""


async def measure_rebuilds(cluster: NamedIndexCluster, options: argparse.Namespace) -> list[Figure]:
    """Rebuilds the index, switches to the new one and back; returns the figures."""
    questions = read_question_texts(options.questions, 200)
    at_rest, changing = QuestionOutcomes(), QuestionOutcomes()
    rebuilds = Rebuilds(cluster, options)
    await cluster.wait_ready()
    async with (
        AsyncClient(cluster.feed, index=_ALIAS) as feeding,
        AsyncClient(cluster.address, index=_ALIAS) as client,
    ):
        writer, stop = Writer(feeding, random.Random(options.seed)), asyncio.Event()
        asker = Asker(client, questions)
        for _ in range(50):
            await asker.ask(at_rest)
        writing = asyncio.create_task(writer.run(stop, options.pause))

        async def change() -> None:
            await rebuilds.rebuild()
            for index in (_NEW, _OLD):
                await rebuilds.switch(index)
                await asyncio.sleep(options.between)

        started = time.monotonic()
        changed = asyncio.ensure_future(change())
        await asyncio.gather(changed, asker.ask_until(changed, changing))
        seconds = time.monotonic() - started
        stop.set()
        await writing
        lost = await writer.find_lost_writes()
        await rebuilds.switch(_NEW)
        lost_again = await writer.find_lost_writes()
    print(f"failed attempts to write: {dict(writer.failures)}; lost: {lost}", file=sys.stderr)
    losses = len(lost) + len(lost_again)
    return [
        Figure("rebuild", "rebuild and two switches", seconds, "s"),
        Figure("rebuild", "kills of commands", rebuilds.killed),
        *quantile_figures("rebuild", "writes held back", rebuilds.held, 0.5, 1.0),
        *at_rest.latency_figures("at rest"),
        *changing.latency_figures("changing"),
        *at_rest.outcome_figures("at rest"),
        *changing.outcome_figures("changing"),
        Figure(
            "questions",
            "generations with answers of two indexes",
            asker.mixed,
            target="0",
            holds=not asker.mixed,
        ),
        Figure("writes", "ids with an acknowledged write", writer.acknowledged),
        Figure("writes", "acknowledged writes lost", losses, target="0", holds=not losses),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench rebuilds`."""
    add_index_and_questions(parser)
    parser.add_argument("--bundle", type=Path, required=True, help="bundle of the new index")
    parser.add_argument("--kills", type=int, default=0, help="number of kills of each command")
    parser.add_argument("--seed", type=int, default=0, help="seed of the writes and kills")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two writes")
    parser.add_argument("--between", type=float, default=5.0, help="seconds between two switches")
    parser.add_argument("--scratch", type=Path, help="directory for the shards of the node")


def run(options: argparse.Namespace) -> int:
    """Rebuilds a copy of the index; returns the exit code."""
    with (
        tempfile.TemporaryDirectory(prefix="winnow-rebuilds-", dir=options.scratch) as directory,
        Processes() as children,
    ):
        cluster = NamedIndexCluster(children, options.index, Path(directory))
        return print_figures(asyncio.run(measure_rebuilds(cluster, options)), as_json=options.json)
