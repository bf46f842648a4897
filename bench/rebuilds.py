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
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure, print_figures, quantile_figures
from bench.inputs import add_index_and_questions, read_question_texts
from bench.journal_server import JournalServer
from bench.moves import Writer
from bench.named_index_cluster import ALIAS, NEW, OLD, NamedIndexCluster
from bench.outcomes import NO_REPLICA, QuestionOutcomes
from bench.random_kills import RandomKills
from winnow.cli.local.processes import Processes
from winnow.client import AsyncClient, Coverage, ShardStatus
from winnow.errors import WinnowError

_PASSAGES = 3
"""Number of passages that are read for a question."""
_HELD = re.compile(r"writes were held back for ([0-9.]+) s")


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
        self._rebuild = ["rebuild", ALIAS, "--bundle", bundle, "--as", NEW]
        self._rebuild += ["--snapshot", cluster.snapshots]

    async def rebuild(self) -> None:
        """Copies the index."""
        await self._run(self._rebuild)

    async def switch(self, index: str) -> None:
        """Switches the alias to an index."""
        printed = await self._run(["alias", ALIAS, index])
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
        AsyncClient(cluster.feed, index=ALIAS) as feeding,
        AsyncClient(cluster.address, index=ALIAS) as client,
    ):
        writer, stop = Writer(feeding, random.Random(options.seed)), asyncio.Event()
        asker = Asker(client, questions, node_kills)
        for _ in range(50):
            await asker.ask(at_rest)
        writing = asyncio.create_task(writer.run(stop, options.pause))

        async def change() -> None:
            await rebuilds.rebuild()
            for number in range(options.switches):
                await rebuilds.switch((NEW, OLD)[number % 2])
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
            await rebuilds.switch((NEW, OLD)[options.switches % 2])
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
