"""Two of the faults on a cluster of txtai: three shards over HTTP, one killed, then one stopped.

    python -m bench txtai --index INDEX --questions FILE [--rate N] [--seconds N]
        [--winnow FILE] [--json]

Needs a separate environment with txtai and Winnow: see docs/faults.md. Builds txtai's shards from
Winnow's, with the same passages and vectors. Starts one process per shard and one that asks them
all, as txtai's documentation has it. Questions have two seconds, as Winnow's have. txtai only
retrieves and reads nothing, so its latency cannot be compared with Winnow's. Compare the share of
questions that is answered, and the latency with that without a fault. `--winnow` names the output
of `python -m bench faults --only kill-shard --only stop-shard --json`.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.table import Table

from bench import txtai_vectors
from bench.inputs import add_index_and_questions
from bench.inputs import questions as read
from bench.scenarios.load import Load
from bench.scenarios.rows import OK, Row, availability, failed, latency
from bench.scenarios.stage import DEADLINE
from winnow.cli.local.cluster import shard_directories
from winnow.cli.local.ports import free_ports
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.store import PassageStore
from winnow.files.opened import OpenFile

_TRANSFORM = "bench.txtai_vectors.transform"
_ALLOWED = {"ALLOW_RESOLVE_TRANSFORM": "True"}
_PASSAGES = 10
_READY_SECONDS = 120.0
_POLL_SECONDS = 0.2
_MOST_OPEN = 256
"""Questions under way at once: a hung cluster must not slow down later ones."""
_PHASES = {"killed": ("kill-shard", "without"), "stopped": ("stop-shard", "without")}
"""Scenario and phase in Winnow's results that match a phase of txtai."""


def build(shard: Path, out: Path) -> None:
    """Builds txtai's index of a shard, with the same passages and vectors."""
    from txtai import Embeddings  # noqa: PLC0415 (an optional package)

    store = PassageStore(OpenFile(shard / "passages.sqlite"))
    vectors = store.vectors(read_shard_manifest(shard).dimension)
    passages = [stored.passage for stored in store.load(range(len(vectors)))]
    txtai_vectors.known.update(
        (passage.text, vector) for passage, vector in zip(passages, vectors, strict=True)
    )
    embeddings = Embeddings({"method": "external", "transform": _TRANSFORM, "content": True})
    embeddings.index((passage.id, passage.text, None) for passage in passages)
    embeddings.save(str(out))
    embeddings.close()
    txtai_vectors.known.clear()


class Cluster:
    """The processes of a txtai cluster; a context manager that leaves no process behind."""

    def __init__(self, scratch: Path, shards: int) -> None:
        """`scratch` holds the index of each shard, by its number."""
        self._scratch = scratch
        self._ports = free_ports(shards + 1)
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def address(self) -> str:
        """HOST:PORT of the process that asks all shards."""
        return f"127.0.0.1:{self._ports[-1]}"

    def start(self, shard: int) -> None:
        """Starts a shard, for the first time or again."""
        self._start(shard, {"path": str(self._scratch / str(shard)), "embeddings": {}})

    def start_all(self) -> None:
        """Starts every shard, and the process that asks them."""
        last = len(self._ports) - 1
        for shard in range(last):
            self.start(shard)
        shards = [f"http://127.0.0.1:{port}" for port in self._ports[:-1]]
        self._start(last, {"cluster": {"shards": shards}})

    def send(self, shard: int, number: signal.Signals) -> None:
        """Sends a signal to a shard."""
        self._children[shard].send_signal(number)

    def _start(self, place: int, config: Mapping[str, Any]) -> None:
        path = self._scratch / f"{place}.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        command = [sys.executable, "-m", "uvicorn", "txtai.api:app", "--log-level", "warning"]
        self._children[place] = subprocess.Popen(
            [*command, "--port", str(self._ports[place])],
            env={**os.environ, **_ALLOWED, "CONFIG": str(path)},
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            child.kill()
            child.wait()


class TxtaiAsker:
    """Asks a txtai cluster over HTTP."""

    def __init__(self, address: str, threads: ThreadPoolExecutor) -> None:
        self._address, self._threads = address, threads

    async def __call__(self, question: str) -> Row:
        """Returns a row without its times."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(DEADLINE):
                found = await loop.run_in_executor(self._threads, self._search, question)
        except TimeoutError:
            return failed("late")
        except urllib.error.HTTPError as error:
            return failed(f"HTTP {error.code}")
        except (OSError, ValueError) as error:
            return failed(type(error).__name__)
        return Row(0.0, 0.0) if found else failed("empty")

    def _search(self, question: str) -> list[Any]:
        query = urllib.parse.urlencode({"query": question, "limit": _PASSAGES})
        url = f"http://{self._address}/search?{query}"
        with urllib.request.urlopen(url, timeout=DEADLINE) as reply:
            return list(json.load(reply))


async def play(cluster: Cluster, load: Load, rate: float, seconds: float) -> None:
    """Asks while all is well, with one shard killed, and with one shard stopped."""

    async def until_answered() -> None:
        load.phase = "waiting"
        async with asyncio.timeout(_READY_SECONDS):
            while (await load.ask()).status != OK:  # noqa: ASYNC110 (other processes)
                await asyncio.sleep(_POLL_SECONDS)

    await until_answered()
    async with load.at(rate):
        load.phase = "healthy"
        await asyncio.sleep(seconds)
        cluster.send(0, signal.SIGKILL)
        load.phase = "killed"
        await asyncio.sleep(seconds)
    cluster.start(0)
    await until_answered()
    async with load.at(rate):
        cluster.send(0, signal.SIGSTOP)
        load.phase = "stopped"
        await asyncio.sleep(seconds)
    cluster.send(0, signal.SIGCONT)


def figures(rows: Mapping[str, list[Row]]) -> dict[str, dict[str, float]]:
    """Returns availability and latency of each phase, named as in Winnow's results.

    A phase without any answer has no latency.
    """
    found: dict[str, dict[str, float]] = {}
    for phase, own in rows.items():
        if phase != "waiting":
            found[phase] = {"questions": len(own), "availability": availability(own)}
            if found[phase]["availability"]:
                found[phase] |= {f"p{n}_ms": latency(own, n / 100) * 1e3 for n in (50, 99)}
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench txtai`."""
    add_index_and_questions(parser)
    parser.add_argument("--rate", type=float, default=5.0, help="questions a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each phase")
    parser.add_argument("--winnow", type=Path, help="JSON of `python -m bench faults`, to compare")


def run(options: argparse.Namespace) -> int:
    """Builds the shards, runs the faults, and prints the figures."""
    questions = read(options.questions)
    os.environ.update(_ALLOWED)
    shards = shard_directories(options.index)
    with (
        tempfile.TemporaryDirectory() as scratch,
        Cluster(Path(scratch), len(shards)) as cluster,
        Console(stderr=True, highlight=False).status("building") as status,
    ):
        for number, shard in enumerate(shards):
            build(shard, Path(scratch) / str(number))
        status.update("asking")
        cluster.start_all()

        async def ask() -> Mapping[str, list[Row]]:
            with ThreadPoolExecutor(_MOST_OPEN) as threads:
                load = Load(TxtaiAsker(cluster.address, threads), questions)
                await play(cluster, load, options.rate, options.seconds)
                return load.rows

        seen = figures(asyncio.run(ask()))
    if options.json:
        print(json.dumps(seen, indent=2))
    else:
        Console(highlight=False).print(_table(seen, options.winnow))
    return 0


def _table(seen: Mapping[str, Mapping[str, float]], winnow: Path | None) -> Table:
    table = Table("system", "phase", "questions", "answered", "p50 ms", "p99 ms")
    for phase, own in seen.items():
        table.add_row("txtai", phase, *_cells(own))
    results = json.loads(winnow.read_text(encoding="utf-8")) if winnow else {}
    for phase, own in beside(results):
        table.add_row("winnow", phase, *_cells(own))
    return table


def _cells(own: Mapping[str, float]) -> list[str]:
    times = [f"{own[name]:.0f}" if name in own else "none" for name in ("p50_ms", "p99_ms")]
    return [f"{own['questions']:.0f}", f"{own['availability']:.1%}", *times]


def beside(results: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yields the matching phases of Winnow's results, if they are there."""
    for phase, (scenario, own) in _PHASES.items():
        with contextlib.suppress(KeyError):
            phases = results[scenario]["phases"]
            yield f"healthy, before {phase}", phases["healthy"]
            yield phase, phases[own]
