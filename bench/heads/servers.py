"""Rows `killed` and `hung`: one of three head servers is lost under load, and comes back."""

import asyncio
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from bench.figures import Figure, quantile
from bench.heads.synthetic_heads import LABELS, constant_head, head_ids, publish
from winnow.bundle import Bundle
from winnow.cli.ladder import zipf
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.deadline import Deadline
from winnow.heads.heads import Heads
from winnow.heads.remote import placed_heads
from winnow.heads.store import open_store

_SERVERS, _HEADS, _CALLERS = 3, 300, 8
_TOKENS, _AT_ONCE = 15, 3
"""Tokens of a text, and heads that are applied to it."""
_DEADLINE, _READY = 2.0, 60.0
_PHASES = ("all three", "two", "all three again")


@dataclass(slots=True)
class _Phase:
    """Latencies and failures in one third of the run."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


async def lost(bundle: Bundle, row: str, number: signal.Signals, seconds: float) -> list[Figure]:
    """Sends a signal (SIGKILL or SIGSTOP) to one server after a third of `seconds`.

    The server serves again after two thirds. Callers apply heads by a Zipf law all the time.
    """
    ids, width = head_ids(_HEADS), bundle.manifest.encoder.dimension
    with tempfile.TemporaryDirectory() as directory, Processes() as processes:
        store, model = open_store(Path(directory)), constant_head(width, LABELS, 0)
        for head in ids:
            publish(store, bundle, head, 1, [f"label-{n}" for n in range(LABELS)], model)
        addresses = [f"127.0.0.1:{port}" for port in free_ports(_SERVERS)]
        for address in addresses:
            command = ["heads", "serve", "--store", directory, "--listen", address]
            processes.start(address, [*command, "--log-level", "warning"])
        heads = placed_heads(bundle.manifest.states_fingerprint)
        heads.update(addresses)
        await _ready(heads, ids, width)
        shares, phases = zipf.shares(_HEADS), [_Phase() for _ in _PHASES]
        began = time.monotonic()

        async def call(chance: Random) -> None:
            states = np.zeros((_TOKENS + 2, width), np.float16)
            while (passed := time.monotonic() - began) < seconds:
                drawn = [ids[place] for place in {*zipf.drawn(_AT_ONCE, shares, chance)}]
                phase = phases[int(len(phases) * passed / seconds)]
                started = time.perf_counter()
                found = await heads.apply(states, drawn, Deadline.after(_DEADLINE))
                phase.seconds.append(time.perf_counter() - started)
                phase.failures += [str(each.failure) for each in found if each.failure]

        async def harm() -> None:
            await asyncio.sleep(seconds / 3)
            processes.send(addresses[0], number)
            await asyncio.sleep(seconds / 3)
            if number == signal.SIGSTOP:
                processes.send(addresses[0], signal.SIGCONT)
            else:
                await asyncio.to_thread(processes.wait, addresses[0])
                processes.again(addresses[0])

        await asyncio.gather(harm(), *(call(Random(seed)) for seed in range(_CALLERS)))
        await heads.close()
    named = zip(_PHASES, phases, strict=True)
    return [figure for name, phase in named for figure in _figures(row, name, phase)]


async def _ready(heads: Heads, ids: Sequence[str], width: int) -> None:
    """Applies the heads until every one succeeds, so that all servers have them in memory."""
    ready = Deadline.after(_READY)
    states = np.zeros((_TOKENS + 2, width), np.float16)
    for start in range(0, len(ids), 32):
        some = list(ids[start : start + 32])
        while any(each.failure for each in await heads.apply(states, some, Deadline.after(10))):
            if ready.expired():
                raise SystemExit(f"the head servers did not start within {_READY:g} s")
            await asyncio.sleep(0.2)


def _figures(row: str, name: str, phase: _Phase) -> list[Figure]:
    failed = len(phase.failures)
    first = f" ({phase.failures[0]})" if failed else ""
    return [
        Figure(row, f"{name}: texts", len(phase.seconds)),
        Figure(row, f"{name}: failed heads{first}", failed, wanted="0", holds=not failed),
        *(quantile(row, name, phase.seconds or [0.0], share) for share in (0.5, 0.9, 0.99, 1.0)),
    ]
