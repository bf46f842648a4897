"""What callers see when one of three head servers is killed under load, and comes back.

    python bench/head_servers.py [--heads 300] [--seconds 30] [--hang] [--json]

Makes a store of small heads, starts three `winnow heads serve` on this machine, and asks for heads
by a Zipf law, three at a time, from `--callers` callers. A third of the way through one server is
killed (SIGKILL), or with --hang stopped (SIGSTOP); two thirds through it is started again, or goes
on. Counts what failed, and prints
milliseconds per phase. Exits with 1 if anything failed.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from winnow.cli.local.ports import free_ports
from winnow.deadline import Deadline
from winnow.heads.finding import placed_heads
from winnow.heads.heads import Heads
from winnow.heads.manifest import INPUT, OUTPUT
from winnow.heads.store import open_store
from winnow.heads.writing import write_head

SERVERS, TOKENS = 3, 15
WIDTH, LABELS = 384, 30
FINGERPRINT = "head-servers-bench"
PHASES = ("all three", "two", "all three again")
DEADLINE = 2.0


@dataclass
class Phase:
    """What callers saw."""

    name: str
    milliseconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def report(self) -> dict[str, object]:
        """Numbers of texts and failures, and quantiles of the time of a text."""
        took = np.array(self.milliseconds or [0.0])
        quantiles = {f"p{q}_ms": round(float(np.percentile(took, q)), 2) for q in (50, 90, 99)}
        return {
            "phase": self.name,
            "texts": len(self.milliseconds),
            "failed_heads": len(self.failures),
            "first_failure": next(iter(self.failures), ""),
            **quantiles,
            "max_ms": round(float(took.max()), 2),
        }


def model() -> bytes:
    """A linear layer over the mean of the states."""
    random = np.random.default_rng(0)
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", [INPUT, "axes"], ["pooled"], keepdims=0),
            helper.make_node("MatMul", ["pooled", "weights"], [OUTPUT]),
        ],
        "head",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["tokens", WIDTH])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [LABELS])],
        [
            numpy_helper.from_array(np.array([0], np.int64), "axes"),
            numpy_helper.from_array(random.normal(size=(WIDTH, LABELS)).astype("f4"), "weights"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(made)
    serialised: bytes = made.SerializeToString()
    return serialised


def fill(store: Path, heads: Sequence[str]) -> None:
    """Publishes the same head under each id."""
    made, opened = model(), open_store(store)
    for head in heads:
        with tempfile.TemporaryDirectory() as directory:
            fields = {
                "id": head,
                "version": 1,
                "kind": "sequence",
                "labels": [f"label {number}" for number in range(LABELS)],
                "encoder": {"name": "bench", "fingerprint": FINGERPRINT, "width": WIDTH},
            }
            write_head(Path(directory), fields, made)
            opened.publish(Path(directory))


class Servers:
    """Three processes."""

    def __init__(self, store: Path, hang: bool) -> None:
        self._hang = hang
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(SERVERS)]
        self._store = store
        self._processes = [self._start(address) for address in self.addresses]

    def take(self, number: int) -> None:
        """Kills one, or has it hang."""
        if self._hang:
            self._processes[number].send_signal(signal.SIGSTOP)
        else:
            self._kill(number)

    def bring_back(self, number: int) -> None:
        """Starts it again, at the same address, or lets it go on."""
        if self._hang:
            self._processes[number].send_signal(signal.SIGCONT)
        else:
            self._processes[number] = self._start(self.addresses[number])

    def end(self) -> None:
        """Kills all."""
        for number in range(SERVERS):
            self._kill(number)

    def _kill(self, number: int) -> None:
        self._processes[number].kill()
        self._processes[number].wait()

    def _start(self, address: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "winnow", "heads", "serve", "--store", str(self._store)]
        return subprocess.Popen([*command, "--listen", address, "--log-level", "warning"])


async def run(servers: Servers, ids: Sequence[str], seconds: float, callers: int) -> list[Phase]:
    """All phases."""
    heads = placed_heads(FINGERPRINT)
    heads.update(servers.addresses)
    await _ready(heads, ids)
    phases = [Phase(name) for name in PHASES]
    began = time.monotonic()

    async def caller(seed: int) -> None:
        random = np.random.default_rng(seed)
        while (passed := time.monotonic() - began) < seconds:
            await _ask(heads, ids, random, phases[int(len(phases) * passed / seconds)])

    async def harm() -> None:
        await asyncio.sleep(seconds / 3)
        await asyncio.to_thread(servers.take, 0)
        await asyncio.sleep(seconds / 3)
        await asyncio.to_thread(servers.bring_back, 0)

    await asyncio.gather(harm(), *map(caller, range(callers)))
    await heads.close()
    return phases


async def _ready(heads: Heads, ids: Sequence[str]) -> None:
    """Waits until every server applies heads, and has all of them loaded."""
    until = time.monotonic() + 60
    states = np.zeros((TOKENS + 2, WIDTH), np.float16)
    for start in range(0, len(ids), 32):
        some = list(ids[start : start + 32])
        while any(e.failure for e in await heads.apply(states, some, Deadline.after(10))):
            if time.monotonic() > until:
                raise SystemExit("the head servers did not start within a minute")
            await asyncio.sleep(0.2)


async def _ask(heads: Heads, ids: Sequence[str], random: np.random.Generator, phase: Phase) -> None:
    states = random.normal(size=(TOKENS + 2, WIDTH)).astype(np.float16)
    drawn = {int(rank - 1) % len(ids) for rank in random.zipf(1.3, size=3)}
    started = time.perf_counter()
    found = await heads.apply(states, [ids[place] for place in drawn], Deadline.after(DEADLINE))
    phase.milliseconds.append(1e3 * (time.perf_counter() - started))
    phase.failures += [str(each.failure) for each in found if each.failure is not None]


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--heads", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--hang", action="store_true", help="stop the server instead of killing it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ids = [f"tenant-{number}" for number in range(options.heads)]
    with tempfile.TemporaryDirectory() as directory:
        fill(Path(directory) / "store", ids)
        servers = Servers(Path(directory) / "store", options.hang)
        try:
            phases = asyncio.run(run(servers, ids, options.seconds, options.callers))
        finally:
            servers.end()
    found = [phase.report() for phase in phases]
    print(json.dumps(found, indent=2) if options.json else "\n".join(map(str, found)))
    return int(any(phase.failures for phase in phases))


if __name__ == "__main__":
    sys.exit(main())
