"""Rebuilds an index under questions and writes, and kills commands and nodes during the rebuild.

    python -m bench rebuilds --index INDEX --bundle BUNDLE --questions FILE [--kills 10]
        [--journal] [--kill-nodes 20]

Serves a copy of INDEX by an alias. Runs `winnow indexes rebuild` with BUNDLE, and then `winnow
indexes alias`, to the new index and back. One client asks and one client writes at the same time,
both by the alias. `--kills` is the number of times that each of the commands is killed with SIGKILL
at a random moment, and run again. At the end every acknowledged write is sent again, before and
after one more switch: the index must report it as unchanged.

With `--journal`, each shard has two replicas that follow a journal of a NATS server. `--kill-nodes`
kills each content node and the NATS server with SIGKILL at random moments, and starts them again.

Targets: every answer is complete and of the index for which the alias stands, and no acknowledged
write is lost. Questions without any replica of a shard are counted apart.
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
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from bench.figures import Figure, print_figures, quantile_figures
from bench.inputs import add_index_and_questions, read_question_texts
from bench.journal_server import NAME as JOURNAL
from bench.journal_server import JournalServer
from bench.moves import Writer
from bench.outcomes import NO_REPLICA, QuestionOutcomes
from bench.random_kills import RandomKills, wait_loaded
from bench.started_cluster import start_cluster
from winnow.catalog import CatalogFile
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.cli.top.polling import ClusterPoller
from winnow.client import AsyncClient, Coverage, ShardStatus
from winnow.content_node.composing.node_indexes import index_directory
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.errors import WinnowError
from winnow.index_directory import shard_directories

_ALIAS, _OLD, _NEW = "docs", "docs-1", "docs-2"
_HOST = "127.0.0.1"
_READY_SECONDS = 300.0
_POLL_SECONDS = 0.2
_POLL_TIMEOUT = "10"
"""Seconds that a front waits for a poll. A node of a busy machine is not lost. One that was killed
refuses polls at once.
"""
_PASSAGES = 3
"""Number of passages that are read for a question."""
_HELD = re.compile(r"writes were held back for ([0-9.]+) s")


class NamedIndexCluster:
    """Nodes and a front that follow a catalog, in processes, with one index and its alias.

    Each node has all shards.
    """

    def __init__(
        self, children: Processes, index: Path, scratch: Path, journal: JournalServer | None
    ) -> None:
        """Starts the processes: two nodes that follow `journal`, or one node without it."""
        self.journal = journal
        names = ["node-0"] if journal is None else ["node-0", "node-1"]
        self.address, self.feed, *addresses = (
            f"{_HOST}:{port}" for port in free_ports(2 + len(names))
        )
        self.nodes = dict(zip(names, addresses, strict=True))
        """The address of each node, by its name."""
        self._catalog = CatalogFile(str(scratch / "indexes.json"))
        self.snapshots = str(scratch / "snapshots")
        manifest = read_index_manifest(index)
        for name in names:
            for shard in shard_directories(index):
                own = index_directory(scratch / name, manifest.index_id)
                shutil.copytree(shard, own / shard.name)
        entry = CatalogIndex(
            index_id=manifest.index_id,
            shards=manifest.shards,
            holders=dict.fromkeys(range(manifest.shards), tuple(names)),
        )
        named = Catalog().with_index(_OLD, entry, self.nodes).with_alias(_ALIAS, _OLD)
        self._catalog.change(lambda _: named)
        following = ["--indexes", self._catalog.url]
        start_cluster(
            children,
            self.nodes,
            scratch,
            listen=self.address,
            feed=self.feed,
            node_flags=[*following, *(["--journal", journal.url] if journal is not None else [])],
            front_flags=[*following, "--poll-timeout", _POLL_TIMEOUT],
        )

    async def wait_ready(self) -> None:
        """Waits until all processes serve, and a question by the alias is answered."""
        for wait_up in self.wait_up().values():
            await wait_up()
        async with asyncio.timeout(_READY_SECONDS), AsyncClient(self.address, index=_ALIAS) as own:
            while True:
                with suppress(WinnowError):
                    await own.ask("ready?")
                    return
                await asyncio.sleep(_POLL_SECONDS)

    def wait_up(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Returns functions that wait until a node or the journal serves, by the process's name."""
        waits: dict[str, Callable[[], Awaitable[None]]] = {
            name: partial(self._wait_node_up, name) for name in self.nodes
        }
        return waits | ({JOURNAL: self.journal.wait_ready} if self.journal is not None else {})

    async def _wait_node_up(self, name: str) -> None:
        """Waits until a node has loaded all its shards, and the front has polled it since."""
        indexes = (self._catalog.read() or Catalog()).indexes
        await wait_loaded(self.nodes[name], [each.index_id for each in indexes.values()])
        loaded = time.monotonic()
        async with asyncio.timeout(_READY_SECONDS):
            for index in indexes:
                while True:
                    if await asyncio.to_thread(self._is_known, name, index, loaded):
                        break
                    await asyncio.sleep(_POLL_SECONDS)

    def _is_known(self, name: str, index: str, since: float) -> bool:
        """Whether the front sends calls for all shards of an index to a node polled `since`."""
        try:
            with ClusterPoller(self.address, [], 5.0, index=index) as poller:
                asked = time.monotonic()
                shards = poller.poll().cluster.shards
        except WinnowError:
            return False
        return bool(shards) and all(
            any(
                each.address == self.nodes[name]
                and each.state in (each.STATE_SERVING, each.STATE_OUT)
                and asked - each.heard_seconds >= since
                for each in shard.replicas
            )
            for shard in shards
        )

    async def change(self, *words: str, kill_after: float | None = None) -> str | None:
        """Runs `winnow indexes`; returns its output. Kills it after `kill_after` seconds, unless it
        has ended by then; then returns None.

        Raises RuntimeError if it fails.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "winnow", "indexes", *words, "--indexes", self._catalog.url),
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

    def __init__(
        self, client: AsyncClient, questions: Sequence[str], node_kills: RandomKills
    ) -> None:
        self._client, self._questions, self._asked = client, questions, 0
        self._node_kills = node_kills
        self.answering: defaultdict[int | None, set[str | None]] = defaultdict(set)
        """The indexes that answered, by the generation of the alias."""

    async def ask(self, series: QuestionOutcomes) -> None:
        """Asks the next question."""
        question = self._questions[self._asked % len(self._questions)]
        self._asked += 1
        started, kills = time.perf_counter(), self._node_kills
        had_replica, losses, problem = kills.has_replica, kills.losses, ""
        try:
            reply = await self._client.ask(question, fresh=True, passages_to_read=_PASSAGES)
            outcome = _outcome(reply.coverage)
            if outcome != "complete":
                problem = f"{outcome}: {reply.coverage}"
            self.answering[reply.generation].add(reply.index)
        except WinnowError as error:
            outcome = type(error).__name__
            problem = f"{outcome}: {error}"
        seconds = time.perf_counter() - started
        if had_replica and losses == kills.losses:
            series.latencies.append(seconds)
            if problem:
                down = ", ".join(sorted(kills.down)) or "nothing"
                print(f"{problem}, after {seconds:.1f} s; down: {down}", file=sys.stderr)
        else:
            outcome += NO_REPLICA
        series.outcomes[outcome] += 1

    async def ask_until(
        self, done: "asyncio.Future[None]", series: QuestionOutcomes, pause: float
    ) -> None:
        """Asks until `done`, with a pause after each question."""
        while not done.done():
            await self.ask(series)
            await asyncio.sleep(pause)

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


async def measure_rebuilds(
    cluster: NamedIndexCluster, node_kills: RandomKills, options: argparse.Namespace
) -> list[Figure]:
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
        asker = Asker(client, questions, node_kills)
        for _ in range(50):
            await asker.ask(at_rest)
        writing = asyncio.create_task(writer.run(stop, options.pause))

        async def change() -> None:
            await rebuilds.rebuild()
            for number in range(options.switches):
                await rebuilds.switch((_NEW, _OLD)[number % 2])
                await asyncio.sleep(options.between)

        started = time.monotonic()
        async with node_kills.running():
            changed = asyncio.ensure_future(change())
            await asyncio.gather(changed, asker.ask_until(changed, changing, options.pause))
            seconds = time.monotonic() - started
        stop.set()
        await writing
        lost = await writer.find_lost_writes()
        async with node_kills.running():
            await rebuilds.switch((_NEW, _OLD)[options.switches % 2])
        lost_again = await writer.find_lost_writes()
    print(f"failed attempts to write: {dict(writer.failures)}; lost: {lost}", file=sys.stderr)
    losses = len(lost) + len(lost_again)
    return [
        Figure("rebuild", f"rebuild and {options.switches} switches", seconds, "s"),
        Figure("rebuild", "kills of commands", rebuilds.killed),
        *(Figure("rebuild", f"kills of {name}", n) for name, n in sorted(node_kills.kills.items())),
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
        Figure("writes", "failed attempts", writer.failures.total()),
        Figure("writes", "acknowledged writes lost", losses, target="0", holds=not losses),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench rebuilds`."""
    add_index_and_questions(parser)
    parser.add_argument("--bundle", type=Path, required=True, help="bundle of the new index")
    parser.add_argument("--kills", type=int, default=0, help="number of kills of each command")
    parser.add_argument(
        "--switches", type=int, default=2, help="number of switches, to the new index and back"
    )
    parser.add_argument(
        "--journal",
        action="store_true",
        help="serve two replicas of each shard, which follow a journal (needs nats-server)",
    )
    parser.add_argument(
        "--kill-nodes",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="mean seconds between two kills of each content node and of the journal; 0: no kills",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the writes and kills")
    parser.add_argument(
        "--pause",
        type=float,
        default=0.05,
        help="seconds between two writes, and between two questions",
    )
    parser.add_argument("--between", type=float, default=5.0, help="seconds between two switches")
    parser.add_argument("--scratch", type=Path, help="directory for the shards of the node")


def run(options: argparse.Namespace) -> int:
    """Rebuilds a copy of the index; returns the exit code."""
    with (
        tempfile.TemporaryDirectory(prefix="winnow-rebuilds-", dir=options.scratch) as directory,
        Processes() as children,
    ):
        scratch = Path(directory)
        journal = JournalServer(children, scratch) if options.journal else None
        if journal is not None and not journal.is_syncing:
            print("this nats-server cannot sync each entry to disk", file=sys.stderr)
        cluster = NamedIndexCluster(children, options.index, scratch, journal)
        node_kills = RandomKills(
            children,
            cluster.wait_up(),
            replicas=cluster.nodes,
            seconds=options.kill_nodes,
            seed=options.seed,
        )
        figures = asyncio.run(measure_rebuilds(cluster, node_kills, options))
        return print_figures(figures, as_json=options.json)
