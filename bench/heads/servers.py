"""Parts `killed` and `hung`: one of three head servers is killed or stopped, and comes back."""

import asyncio
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from bench.figures import Figure, quantile_figures
from bench.heads.synthetic_heads import LABELS, constant_model, head_ids, publish_head
from winnow.bundle import Bundle
from winnow.cli.ladder import zipf
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.deadline import Deadline
from winnow.heads.heads import Heads
from winnow.heads.remote import placed_heads
from winnow.heads.store import open_store

_SERVERS, _HEADS, _CALLERS = 3, 300, 8
_TOKENS, _HEADS_PER_TEXT = 15, 3
"""Number of tokens of a text, and of heads in one call."""
_DEADLINE, _READY_TIMEOUT = 2.0, 60.0
_PHASES = ("three servers", "two servers", "three servers again")


@dataclass(slots=True)
class _Phase:
    """Latencies of calls and failures of heads in one third of the run."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


async def measure_lost_server(
    bundle: Bundle, part: str, signal_number: signal.Signals, seconds: float
) -> list[Figure]:
    """Kills or stops one of three head servers for the second third of `seconds`.

    `signal_number` is SIGKILL or SIGSTOP. Callers apply heads during the whole run. The frequencies
    of heads follow Zipf's law.
    """
    ids, width = head_ids(_HEADS), bundle.manifest.encoder.dimension
    with tempfile.TemporaryDirectory() as directory, Processes() as processes:
        store, model = open_store(Path(directory)), constant_model(width, LABELS, 0)
        for head in ids:
            publish_head(store, bundle, head, 1, [f"label-{n}" for n in range(LABELS)], model)
        addresses = [f"127.0.0.1:{port}" for port in free_ports(_SERVERS)]
        for address in addresses:
            command = ["heads", "serve", "--store", directory, "--listen", address]
            processes.start(address, [*command, "--log-level", "warning"])
        heads = placed_heads(bundle.manifest.states_fingerprint)
        heads.update(addresses)
        await _load_everywhere(heads, ids, width)
        shares, phases = zipf.shares(_HEADS), [_Phase() for _ in _PHASES]
        started = time.monotonic()

        async def call(rng: Random) -> None:
            states = np.zeros((_TOKENS + 2, width), np.float16)
            while (elapsed := time.monotonic() - started) < seconds:
                head_sample = [
                    ids[index] for index in {*zipf.draw_texts(_HEADS_PER_TEXT, shares, rng)}
                ]
                phase = phases[int(len(phases) * elapsed / seconds)]
                call_started = time.perf_counter()
                applied = await heads.apply(states, head_sample, Deadline.after(_DEADLINE))
                phase.seconds.append(time.perf_counter() - call_started)
                phase.failures += [str(each.failure) for each in applied if each.failure]

        async def lose_and_restore_server() -> None:
            await asyncio.sleep(seconds / 3)
            processes.send(addresses[0], signal_number)
            await asyncio.sleep(seconds / 3)
            if signal_number == signal.SIGSTOP:
                processes.send(addresses[0], signal.SIGCONT)
            else:
                await asyncio.to_thread(processes.wait, addresses[0])
                processes.restart(addresses[0])

        await asyncio.gather(
            lose_and_restore_server(), *(call(Random(seed)) for seed in range(_CALLERS))
        )
        await heads.close()
    phases_by_name = zip(_PHASES, phases, strict=True)
    return [figure for name, phase in phases_by_name for figure in _figures(part, name, phase)]


async def _load_everywhere(heads: Heads, ids: Sequence[str], width: int) -> None:
    """Applies all heads until each succeeds, so that every server has them in memory.

    Raises:
        SystemExit: a head still fails after `_READY_TIMEOUT` seconds.

    """
    deadline = Deadline.after(_READY_TIMEOUT)
    states = np.zeros((_TOKENS + 2, width), np.float16)
    for start in range(0, len(ids), 32):
        batch = list(ids[start : start + 32])
        while any(each.failure for each in await heads.apply(states, batch, Deadline.after(10))):
            if deadline.expired():
                raise SystemExit(
                    f"the head servers did not serve all heads within {_READY_TIMEOUT:g} s"
                )
            await asyncio.sleep(0.2)


def _figures(part: str, name: str, phase: _Phase) -> list[Figure]:
    failed = len(phase.failures)
    reason = f" ({phase.failures[0]})" if failed else ""
    return [
        Figure(part, f"{name}: texts", len(phase.seconds)),
        Figure(part, f"{name}: failed heads{reason}", failed, target="0", holds=not failed),
        *quantile_figures(part, name, phase.seconds or [0.0], 0.5, 0.9, 0.99, 1.0),
    ]
