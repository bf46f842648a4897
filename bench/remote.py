"""What it costs to have texts encoded by a server instead of in this process.

    python bench/remote.py [--questions FILE] [--rounds 7] [--json]

Starts `winnow encoder` on this machine, and encodes the same texts four ways in turn, round after
round: here, and there with states as float16, as int8, and without states. First one text at a time
(milliseconds; the overhead is that of the same text in the same round), then eight at once (texts
per second, and texts per second of processor time, of this process and the server together).
Medians over rounds, with the smallest and the largest one. Encodings are not cached.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import grpc

from winnow.bundle import Bundle, default_bundle, load_bundle
from winnow.cli.local.ports import free_ports
from winnow.cli.questions import read_questions
from winnow.domain.encoder import StatesFormat
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.packaged import demo_corpus
from winnow.rpc.channel import open_balanced
from winnow.settings.common import cores
from winnow.text.encoder import TextEncoder
from winnow.text.remote import SERVICE, RemoteTextEncoder
from winnow.text.tokenizer import Tokenizer

HERE = "here"
AT_ONCE = 8
_TICKS = os.sysconf("SC_CLK_TCK")
Texts = Sequence[tuple[int, ...]]


@dataclass
class Way:
    """One way to encode, and what was measured of it in each round."""

    encoder: TextEncoder
    pids: Sequence[int]
    milliseconds: list[float] = field(default_factory=list)
    overhead: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)
    per_core_second: list[float] = field(default_factory=list)


def spent(pids: Sequence[int]) -> float:
    """Seconds of processor time of processes, all threads together."""
    found = 0.0
    for pid in pids:
        parts = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        found += (int(parts[11]) + int(parts[12])) / _TICKS
    return found


async def one_by_one(way: Way, texts: Texts) -> list[float]:
    """Milliseconds of each text."""
    found = []
    for ids in texts:
        started = time.perf_counter()
        await way.encoder.encode(ids)
        found.append(1e3 * (time.perf_counter() - started))
    return found


async def at_once(way: Way, texts: Texts) -> None:
    """Takes the throughput of several callers; the texts are gone through until it is a second."""
    left, done = iter(texts), 0
    began, before = time.perf_counter(), spent(way.pids)

    async def caller() -> None:
        nonlocal left, done
        while time.perf_counter() - began < 1.0:
            ids = next(left, None)
            if ids is None:
                left = iter(texts)
                continue
            await way.encoder.encode(ids)
            done += 1

    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    way.per_second.append(done / (time.perf_counter() - began))
    way.per_core_second.append(done / max(spent(way.pids) - before, 1 / _TICKS))


async def measure(ways: dict[str, Way], texts: Texts, rounds: int) -> None:
    """All ways in turn, in another order in each round."""
    for number in range(rounds):
        names = list(ways)
        names = names[number % len(names) :] + names[: number % len(names)]
        took = {name: await one_by_one(ways[name], texts) for name in names}
        for name, way in ways.items():
            way.milliseconds.append(median(took[name]))
            pairs = zip(took[name], took[HERE], strict=True)
            way.overhead.append(median(there - here for there, here in pairs))
        for name in names:
            await at_once(ways[name], texts)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


async def run(bundle: Bundle, address: str, pid: int, texts: Texts, rounds: int) -> dict[str, Way]:
    """Opens every way, and measures."""
    tokenizer, threads = Tokenizer(bundle.tokenizer), cores()
    model = open_question_encoder(bundle, tokenizer.special, states=True)
    here, both = [os.getpid()], [os.getpid(), pid]
    local = LocalTextEncoder(model, threads)
    channel = open_balanced(address, SERVICE)
    ways = {HERE: Way(local, here)}
    for kind in (StatesFormat.FLOAT16, StatesFormat.INT8, StatesFormat.NONE):
        remote = _remote(channel, address, bundle, kind)
        await remote.warm_up(max(map(len, texts)))
        ways[f"there, states {kind.value}"] = Way(remote, both)
    await local.warm_up(max(map(len, texts)))
    try:
        await measure(ways, texts, rounds)
    finally:
        await channel.close()
        local.close()
    return ways


def _remote(
    channel: grpc.aio.Channel, address: str, bundle: Bundle, kind: StatesFormat
) -> RemoteTextEncoder:
    return RemoteTextEncoder(
        channel, address, bundle.manifest.states_fingerprint, kind, timeout=30.0
    )


def report(ways: dict[str, Way]) -> dict[str, dict[str, list[float]]]:
    """Median, smallest and largest of each figure over rounds."""
    return {
        name: {
            "p50_ms": _spread(way.milliseconds),
            "overhead_ms": _spread(way.overhead),
            "texts_per_s": _spread(way.per_second),
            "texts_per_core_s": _spread(way.per_core_second),
        }
        for name, way in ways.items()
    }


def _spread(values: Sequence[float]) -> list[float]:
    return [round(value, 3) for value in (median(values), min(values), max(values))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--questions", type=Path, default=demo_corpus() / "questions.jsonl")
    parser.add_argument("--limit", type=int, default=200, help="most texts")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    bundle = load_bundle(default_bundle())
    tokenizer = Tokenizer(bundle.tokenizer)
    asked = [each.question for each in read_questions(options.questions)][: options.limit]
    texts = [tokenizer.tokenise(text).ids[:62] for text in asked]
    address = f"127.0.0.1:{free_ports(1)[0]}"
    command = [sys.executable, "-m", "winnow", "encoder", "--listen", address]
    command += ["--drain-linger", "0", "--log-level", "warning"]
    server = subprocess.Popen(command)
    try:
        ways = asyncio.run(run(bundle, address, server.pid, texts, options.rounds))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    found = report(ways)
    if options.json:
        print(json.dumps({"cores": cores(), "texts": len(texts), "ways": found}, indent=2))
        return
    print(f"{len(texts)} texts, {options.rounds} rounds, {cores()} cores: median (least, most)")
    for name, figures in found.items():
        print(name)
        for figure, (middle, least, most) in figures.items():
            print(f"  {figure:16} {middle:9.2f}  ({least:.2f}, {most:.2f})")


if __name__ == "__main__":
    main()
