"""Moves and splits shards under questions and writes, and kills nodes during these changes.

    python -m bench moves --index INDEX --questions FILE [--moves 20] [--splits 20] [--kills 30]

Serves a copy of INDEX with nodes that follow an assignment. Moves random shards to another node, or
splits them, as `winnow shards` does. One client asks and one client writes at the same time. Before
each change, the same questions are asked at rest. `--kills` kills a node of the change with SIGKILL
at a random moment, and starts it again at once. At the end every acknowledged write is sent again:
the index must report it as unchanged.

Targets: every answer is complete unless a node is down, no acknowledged write is lost, and the p99
of questions during changes is at most 1.5 times the p99 at rest.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bench.figures import Figure, at_most, print_figures, quantile_figures, ratio_figure
from bench.inputs import add_index_and_questions, read_question_texts
from bench.outcomes import NODE_DOWN, QuestionOutcomes
from bench.random_kills import kill_and_restart, wait_loaded
from bench.started_cluster import start_cluster
from winnow.assignment import AssignmentFile
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.cli.shards.placed import PlacedShards
from winnow.cli.top.polling import ClusterPoller
from winnow.client import AsyncClient, PassageFields
from winnow.client.messages import AnswerClient
from winnow.domain.assignment import Assignment
from winnow.errors import WinnowError
from winnow.v1 import answer_pb2
from winnow.v1.cluster_pb2 import GetClusterResponse, ShardState

MAX_P99_RATIO = 1.5
_HOST = "127.0.0.1"
_POLL_SECONDS = 0.2
_FIRST_SECONDS, _MOVE_SECONDS = 120.0, 300.0
"""Maximum time in seconds until the cluster serves, and until a shard has moved."""
_FRONT_SECONDS = 2.0
"""Seconds after which the front node has polled a restarted node."""
_ID_COUNT = 500
"""Number of ids that are written repeatedly, with growing versions."""


class MovingCluster:
    """Content nodes that follow an assignment, and a front node."""

    def __init__(self, children: Processes, index: Path, scratch: Path, nodes: int) -> None:
        self._children = children
        self._file = AssignmentFile(str(scratch / "assignment.json"))
        ports = free_ports(nodes + 2)
        self.address, self.feed = f"{_HOST}:{ports[-1]}", f"{_HOST}:{ports[-2]}"
        shutil.copytree(index, scratch / "node-0")
        self.down: set[str] = set()
        """Names of the nodes that were killed and do not serve yet."""
        self._nodes = {f"node-{n}": f"{_HOST}:{port}" for n, port in enumerate(ports[:nodes])}
        following = ["--assignment", self._file.url, "--merge-after", "200"]
        start_cluster(
            children,
            self._nodes,
            scratch,
            listen=self.address,
            feed=self.feed,
            node_flags=following,
        )

    async def cluster_state(self) -> GetClusterResponse:
        """Returns the state of the cluster, as the front node reports it."""

        def poll() -> GetClusterResponse:
            with ClusterPoller(self.address, [], 5.0) as poller:
                return poller.poll().cluster

        return await asyncio.to_thread(poll)

    async def wait_ready(self, nodes: int) -> None:
        """Waits until the front node knows all `nodes` and every shard has a replica."""
        async with asyncio.timeout(_FIRST_SECONDS):
            while True:
                with suppress(WinnowError):
                    cluster = await self.cluster_state()
                    placement = PlacedShards(cluster, None)
                    served = all(shard.replicas for shard in cluster.shards)
                    if cluster.index_id and served and len(placement.nodes()) == nodes:
                        return
                await asyncio.sleep(_POLL_SECONDS)

    async def start_change(self, rng: random.Random, *, splits: bool) -> tuple[str, str]:
        """Starts to move or to split a random shard; returns the names of its old and new node."""
        cluster = await self.cluster_state()
        chosen: tuple[str, str] = ("", "")

        def change(before: Assignment | None) -> Assignment:
            nonlocal chosen
            placement = PlacedShards(cluster, before)
            present, nodes = placement.present(), placement.nodes()
            shard = rng.choice(sorted(present.holders))
            (old,) = present.holders[shard]
            if splits:
                chosen = old, old
                return present.with_split(shard, nodes)
            chosen = old, rng.choice(sorted(nodes.keys() - {old}))
            return present.with_move(shard, "", chosen[1], nodes)

        self._file.change(change)
        return chosen

    async def wait_moved(self) -> None:
        """Waits until each shard is served by the node to which it is assigned."""
        async with asyncio.timeout(_MOVE_SECONDS):
            while True:
                with suppress(WinnowError):
                    placement = PlacedShards(await self.cluster_state(), self._file.read())
                    rows = [row for row in placement.rows() if row.shard is not None]
                    if not placement.moving() and all(row.state == "serving" for row in rows):
                        return
                await asyncio.sleep(_POLL_SECONDS)

    async def kill_and_restart(self, name: str) -> None:
        """Kills a node and starts it again; returns when all shards are served."""
        self.down.add(name)
        await kill_and_restart(self._children, name)
        async with asyncio.timeout(_FIRST_SECONDS):
            await wait_loaded(self._nodes[name])
            await asyncio.sleep(_FRONT_SECONDS)
            while True:
                with suppress(WinnowError):
                    if all(map(_is_served, (await self.cluster_state()).shards)):
                        break
                await asyncio.sleep(_POLL_SECONDS)
        self.down.discard(name)


def _is_served(shard: ShardState) -> bool:
    return any(replica.state == replica.STATE_SERVING for replica in shard.replicas)


class Writer:
    """Writes passages with growing versions, and remembers the acknowledged writes."""

    def __init__(self, client: AsyncClient, rng: random.Random) -> None:
        self._client, self._rng = client, rng
        self._acknowledged: dict[str, PassageFields] = {}
        self.failures: Counter[str] = Counter()
        self._version = 0

    @property
    def acknowledged(self) -> int:
        """Number of ids with an acknowledged write."""
        return len(self._acknowledged)

    async def run(self, stop: asyncio.Event, pause: float) -> None:
        """Writes until `stop` is set. Repeats a failed write until it is acknowledged."""
        while not stop.is_set():
            self._version += 1
            name = f"moved-{self._rng.randrange(_ID_COUNT)}"
            passage: PassageFields = {
                "id": name,
                "text": f"Version {self._version} of the passage named {name}.",
                "version": self._version,
            }
            while True:
                try:
                    await self._client.put([passage], timeout=10.0)
                    break
                except WinnowError as error:
                    self.failures[type(error).__name__] += 1
                    await asyncio.sleep(pause)
            self._acknowledged[name] = passage
            await asyncio.sleep(pause)

    async def find_lost_writes(self) -> list[str]:
        """Returns the ids whose last acknowledged passage is missing from the index."""
        lost = []
        for name, passage in self._acknowledged.items():
            (result,) = await self._client.put([passage], timeout=60.0)
            if result.outcome.value != "unchanged":
                lost.append(f"{name} ({result.outcome.value})")
        return lost


async def ask_questions(
    cluster: MovingCluster,
    client: AnswerClient,
    questions: Sequence[str],
    series: QuestionOutcomes,
    until: "asyncio.Future[None] | None" = None,
) -> None:
    """Asks each question once, one after the other, or repeats them until `until` is done."""
    position = 0
    while (not until.done()) if until is not None else position < len(questions):
        question = questions[position % len(questions)]
        position += 1
        was_down = bool(cluster.down)
        started = time.perf_counter()
        request = answer_pb2.AnswerRequest(question=question, fresh=True)
        try:
            reply = await client.ask(request, timeout=10.0)
            outcome = "complete" if reply.coverage.complete else "incomplete"
            reasons = [shard.reason for shard in reply.coverage.shards if shard.reason]
            if reasons and not (was_down or cluster.down):
                print(f"incomplete answer: {reasons}", file=sys.stderr)
        except WinnowError as error:
            outcome = type(error).__name__
        if was_down or cluster.down:
            series.outcomes[f"{outcome}{NODE_DOWN}"] += 1
        else:
            series.outcomes[outcome] += 1
            series.latencies.append(time.perf_counter() - started)


async def measure_moves(cluster: MovingCluster, options: argparse.Namespace) -> list[Figure]:
    """Runs the moves, splits and kills; returns the figures."""
    rng = random.Random(options.seed)
    questions = read_question_texts(options.questions, 200)
    at_rest, moving = QuestionOutcomes(), QuestionOutcomes()
    durations: dict[str, list[float]] = {}
    await cluster.wait_ready(options.nodes)
    async with AsyncClient(cluster.feed) as feeding, AnswerClient(cluster.address) as client:
        writer, stop = Writer(feeding, rng), asyncio.Event()
        writing = asyncio.create_task(writer.run(stop, options.pause))
        await ask_questions(cluster, client, questions[:50], QuestionOutcomes())  # warms up
        kills_left = options.kills
        changes = [False] * options.moves + [True] * options.splits
        rng.shuffle(changes)
        for number, splits in enumerate(changes):
            block = [questions[(number * 20 + each) % len(questions)] for each in range(40)]
            await ask_questions(cluster, client, block, at_rest)
            nodes = await cluster.start_change(rng, splits=splits)
            started = time.perf_counter()
            end = asyncio.ensure_future(cluster.wait_moved())
            asking = asyncio.create_task(ask_questions(cluster, client, block, moving, end))
            kills = -(-kills_left // (len(changes) - number))
            for _ in range(kills):
                await asyncio.sleep(rng.uniform(0.0, 3.0))
                await cluster.kill_and_restart(rng.choice(nodes))
            kills_left -= kills
            await asyncio.gather(end, asking)
            name = "split" if splits else "move"
            seconds = time.perf_counter() - started
            durations.setdefault(name, []).append(seconds)
            print(
                f"{number + 1}: {name} {nodes[0]} -> {nodes[1]}, {seconds:.1f} s, "
                f"{kills} kills; {dict(moving.outcomes)}",
                file=sys.stderr,
                flush=True,
            )
        stop.set()
        await writing
        lost = await writer.find_lost_writes()
    print(f"failed attempts to write: {dict(writer.failures)}; lost: {lost}", file=sys.stderr)
    return figures_of_moves(at_rest, moving, durations, writer.acknowledged, len(lost))


def figures_of_moves(
    at_rest: QuestionOutcomes,
    moving: QuestionOutcomes,
    durations: Mapping[str, list[float]],
    written: int,
    lost: int,
) -> list[Figure]:
    """Returns the figures of a run."""
    rows: list[Figure] = []
    for name, own in durations.items():
        rows += quantile_figures(name, "duration", own, 0.5)
    for name, series in (("at rest", at_rest), ("moving", moving)):
        rows += [*series.latency_figures(name), *series.outcome_figures(name)]
    ratio = ratio_figure(
        "questions", "p99 while moving / at rest", moving.latencies, at_rest.latencies, 0.99
    )
    return [
        *rows,
        at_most(ratio, MAX_P99_RATIO),
        Figure("writes", "ids with an acknowledged write", written),
        Figure("writes", "acknowledged writes lost", lost, target="0", holds=not lost),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench moves`."""
    add_index_and_questions(parser)
    parser.add_argument("--moves", type=int, default=20, help="number of shards to move")
    parser.add_argument("--splits", type=int, default=0, help="number of shards to split")
    parser.add_argument(
        "--kills", type=int, default=0, help="number of kills of a node during the changes"
    )
    parser.add_argument("--nodes", type=int, default=3, help="number of content nodes")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order of moves and kills")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two writes")
    parser.add_argument("--scratch", type=Path, help="directory for the nodes' shards")


def run(options: argparse.Namespace) -> int:
    """Moves and splits shards of a copy of the index; returns the exit code."""
    with (
        tempfile.TemporaryDirectory(prefix="winnow-moves-", dir=options.scratch) as directory,
        Processes() as children,
    ):
        cluster = MovingCluster(children, options.index, Path(directory), options.nodes)
        return print_figures(asyncio.run(measure_moves(cluster, options)), as_json=options.json)
