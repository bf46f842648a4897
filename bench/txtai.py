"""Causes two faults in a txtai cluster: kills one shard, then stops one.

    python -m bench txtai --index INDEX --questions FILE [--rate N] [--seconds N]
        [--winnow FILE] [--json]

Needs a separate environment with txtai and Winnow: see docs/faults.md. Builds txtai shards with the
passages and vectors of the Winnow shards. As in txtai's documentation, one process serves each
shard, and one more process queries all shards. Questions have the same deadline of two seconds as
in `bench faults`. txtai only retrieves, so its latencies cannot be compared with Winnow's. Compare
the share of answered questions, and the growth of latencies during a fault. `--winnow` takes the
output of `python -m bench faults --only kill-shard --only stop-shard --json`.
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
from bench.inputs import add_index_and_questions, read_question_texts
from bench.scenarios.load import Load
from bench.scenarios.rows import OK, Row, availability, failed_row, latency_quantile
from bench.scenarios.stage import DEADLINE
from winnow.cli.local.ports import free_ports
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.store import PassageStore
from winnow.files.opened import OpenFile
from winnow.index_directory import shard_directories

_TRANSFORM = "bench.txtai_vectors.transform"
_ENVIRONMENT = {"ALLOW_RESOLVE_TRANSFORM": "True"}
_PASSAGES = 10
_READY_SECONDS = 120.0
_POLL_SECONDS = 0.2
_MAX_IN_FLIGHT = 256
"""Maximum number of questions in flight. It is high, so that a hung cluster delays no question."""
_WINNOW_PHASES = {"killed": ("kill-shard", "without"), "stopped": ("stop-shard", "without")}
"""Matching scenario and phase in Winnow's results, by phase of txtai."""


def build_index(shard: Path, out: Path) -> None:
    """Builds a txtai index in `out` from the passages and vectors of a Winnow shard."""
    from txtai import Embeddings  # noqa: PLC0415 (an optional package)

    store = PassageStore(OpenFile(shard / "passages.sqlite"))
    vectors = store.vectors(read_shard_manifest(shard).dimension)
    passages = [stored.passage for stored in store.load(range(len(vectors)))]
    txtai_vectors.precomputed.update(
        (passage.text, vector) for passage, vector in zip(passages, vectors, strict=True)
    )
    embeddings = Embeddings({"method": "external", "transform": _TRANSFORM, "content": True})
    embeddings.index((passage.id, passage.text, None) for passage in passages)
    embeddings.save(str(out))
    embeddings.close()
    txtai_vectors.precomputed.clear()


class TxtaiCluster:
    """The processes of a txtai cluster; a context manager that leaves no process behind."""

    def __init__(self, scratch: Path, shards: int) -> None:
        """`scratch` has the txtai index of each shard, in a directory named by its number."""
        self._scratch = scratch
        self._ports = free_ports(shards + 1)
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def address(self) -> str:
        """HOST:PORT of the process that queries all shards."""
        return f"127.0.0.1:{self._ports[-1]}"

    def start(self, shard: int) -> None:
        """Starts or restarts the process of a shard."""
        self._start(shard, {"path": str(self._scratch / str(shard)), "embeddings": {}})

    def start_all(self) -> None:
        """Starts the process of every shard, and the process that queries them."""
        last = len(self._ports) - 1
        for shard in range(last):
            self.start(shard)
        shards = [f"http://127.0.0.1:{port}" for port in self._ports[:-1]]
        self._start(last, {"cluster": {"shards": shards}})

    def send_signal(self, shard: int, signal_number: signal.Signals) -> None:
        """Sends a signal to the process of a shard."""
        self._children[shard].send_signal(signal_number)

    def _start(self, number: int, config: Mapping[str, Any]) -> None:
        path = self._scratch / f"{number}.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        command = [sys.executable, "-m", "uvicorn", "txtai.api:app", "--log-level", "warning"]
        self._children[number] = subprocess.Popen(
            [*command, "--port", str(self._ports[number])],
            env={**os.environ, **_ENVIRONMENT, "CONFIG": str(path)},
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            child.kill()
            child.wait()


class TxtaiAsker:
    """Asks a txtai cluster a question over HTTP."""

    def __init__(self, address: str, threads: ThreadPoolExecutor) -> None:
        self._address, self._threads = address, threads

    async def __call__(self, question: str) -> Row:
        """Asks a question and returns its row, whose two times are 0."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(DEADLINE):
                found = await loop.run_in_executor(self._threads, self._search, question)
        except TimeoutError:
            return failed_row("late")
        except urllib.error.HTTPError as error:
            return failed_row(f"HTTP {error.code}")
        except (OSError, ValueError) as error:
            return failed_row(type(error).__name__)
        return Row(0.0, 0.0) if found else failed_row("empty")

    def _search(self, question: str) -> list[Any]:
        query = urllib.parse.urlencode({"query": question, "limit": _PASSAGES})
        url = f"http://{self._address}/search?{query}"
        with urllib.request.urlopen(url, timeout=DEADLINE) as reply:
            return list(json.load(reply))


async def cause_faults(cluster: TxtaiCluster, load: Load, rate: float, seconds: float) -> None:
    """Asks questions without a fault, with one shard killed, and with one shard stopped."""

    async def until_answered() -> None:
        load.phase = "waiting"
        async with asyncio.timeout(_READY_SECONDS):
            while (await load.ask()).status != OK:  # noqa: ASYNC110 (other processes)
                await asyncio.sleep(_POLL_SECONDS)

    await until_answered()
    async with load.ask_at_rate(rate):
        load.phase = "healthy"
        await asyncio.sleep(seconds)
        cluster.send_signal(0, signal.SIGKILL)
        load.phase = "killed"
        await asyncio.sleep(seconds)
    cluster.start(0)
    await until_answered()
    async with load.ask_at_rate(rate):
        cluster.send_signal(0, signal.SIGSTOP)
        load.phase = "stopped"
        await asyncio.sleep(seconds)
    cluster.send_signal(0, signal.SIGCONT)


def phase_figures(rows: Mapping[str, list[Row]]) -> dict[str, dict[str, float]]:
    """Returns availability and latencies by phase, with the same keys as Winnow's results.

    A phase without any answer has no latencies.
    """
    found: dict[str, dict[str, float]] = {}
    for phase, own in rows.items():
        if phase != "waiting":
            found[phase] = {"questions": len(own), "availability": availability(own)}
            if found[phase]["availability"]:
                found[phase] |= {f"p{n}_ms": latency_quantile(own, n / 100) * 1e3 for n in (50, 99)}
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench txtai`."""
    add_index_and_questions(parser)
    parser.add_argument("--rate", type=float, default=5.0, help="questions per second")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each phase")
    parser.add_argument(
        "--winnow", type=Path, help="JSON output of `python -m bench faults` to compare with"
    )


def run(options: argparse.Namespace) -> int:
    """Builds the shards, runs the faults, and prints the figures."""
    questions = read_question_texts(options.questions)
    os.environ.update(_ENVIRONMENT)
    shards = shard_directories(options.index)
    with (
        tempfile.TemporaryDirectory() as scratch,
        TxtaiCluster(Path(scratch), len(shards)) as cluster,
        Console(stderr=True, highlight=False).status("building") as status,
    ):
        for number, shard in enumerate(shards):
            build_index(shard, Path(scratch) / str(number))
        status.update("asking")
        cluster.start_all()

        async def ask() -> Mapping[str, list[Row]]:
            with ThreadPoolExecutor(_MAX_IN_FLIGHT) as threads:
                load = Load(TxtaiAsker(cluster.address, threads), questions)
                await cause_faults(cluster, load, options.rate, options.seconds)
                return load.rows

        by_phase = phase_figures(asyncio.run(ask()))
    if options.json:
        print(json.dumps(by_phase, indent=2))
    else:
        Console(highlight=False).print(_results_table(by_phase, options.winnow))
    return 0


def _results_table(by_phase: Mapping[str, Mapping[str, float]], winnow: Path | None) -> Table:
    table = Table("system", "phase", "questions", "answered", "p50 ms", "p99 ms")
    for phase, figures_of_phase in by_phase.items():
        table.add_row("txtai", phase, *_table_cells(figures_of_phase))
    results = json.loads(winnow.read_text(encoding="utf-8")) if winnow else {}
    for phase, figures_of_phase in winnow_phases(results):
        table.add_row("winnow", phase, *_table_cells(figures_of_phase))
    return table


def _table_cells(figures_of_phase: Mapping[str, float]) -> list[str]:
    times = [
        f"{figures_of_phase[name]:.0f}" if name in figures_of_phase else "none"
        for name in ("p50_ms", "p99_ms")
    ]
    return [
        f"{figures_of_phase['questions']:.0f}",
        f"{figures_of_phase['availability']:.1%}",
        *times,
    ]


def winnow_phases(results: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yields the name and the figures of each matching phase in Winnow's results."""
    for phase, (scenario, winnow_phase) in _WINNOW_PHASES.items():
        with contextlib.suppress(KeyError):
            phases = results[scenario]["phases"]
            yield f"healthy, before {phase}", phases["healthy"]
            yield phase, phases[winnow_phase]
