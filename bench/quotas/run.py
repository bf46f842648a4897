"""Measures how a tenant beyond its quota of questions slows down other tenants.

    python -m bench quotas [--rounds 40] [--seconds 5] [--json]

Builds a small index with tenants, and serves it with keys and quotas in one process. Other tenants
ask at a fixed rate, each with its own key. A greedy tenant asks nothing, then at its quota, then at
four times its quota, in another process. The phases of a round have another order in each round.
Ratios are medians over five blocks of rounds. Exits with 1 if the p95 of the others beside four
times the quota is more than 1.3 times that beside the quota.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure, at_most, print_figures, quantile_figures, ratio_figure
from winnow.cli.keys.changing import add_key
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.cli.units.asking import processor_seconds
from winnow.client import AsyncClient, Credentials
from winnow.domain.quota import Quotas, TenantQuota
from winnow.errors import WinnowError
from winnow.keys.key import Scope
from winnow.parent import PARENT_VARIABLE
from winnow.quotas.file import write_quotas

_ALONE, _WITHIN, _BEYOND = "alone", "at the quota", "at four times the quota"
_FACTORS = {_ALONE: 0.0, _WITHIN: 1.0, _BEYOND: 4.0}
"""Rate of the greedy tenant in each phase, in multiples of its quota."""
_MAX_RATIO = 1.3
_LEVEL = 0.95
_GREEDY = "greedy"
_TIMEOUT = 10.0
_READY_SECONDS = 120.0
_SETTLING = 1.0
"""Seconds after a change of the greedy tenant's rate in which questions do not count."""
_IDLE_SECONDS = 3.0
_BLOCKS = 7
"""Number of blocks of answers and of refusals whose processor time is measured."""
_WORDS = [
    "the",
    "report",
    "was",
    "signed",
    "in",
    "spring",
    "by",
    "a",
    "small",
    "office",
    "that",
    "counts",
    "boats",
    "along",
    "the",
    "coast",
    "and",
    "sends",
    "letters",
    "to",
    "the",
    "harbour",
    "every",
    "week",
    "because",
    "ships",
    "need",
    "water",
    "bread",
    "rope",
    "paint",
    "and",
    "new",
    "sails",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench quotas`."""
    parser.add_argument("--rounds", type=int, default=40, help="rounds of phases; 0 for none")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of a phase")
    parser.add_argument("--others", type=int, default=3, help="number of other tenants")
    parser.add_argument("--rate", type=float, default=1.0, help="questions a second of each other")
    parser.add_argument("--quota", type=float, default=2.0, help="quota of the greedy tenant")
    parser.add_argument("--passages", type=int, default=30, help="passages of each tenant")
    parser.add_argument("--read", type=int, default=2, help="passages to read for each question")
    parser.add_argument("--seed", type=int, default=1, help="seed of the passages")


def run(options: argparse.Namespace) -> int:
    """Measures, and prints the figures."""
    return print_figures(asyncio.run(_measure(options)), as_json=options.json)


@dataclass(slots=True)
class _Phase:
    """The questions of one phase."""

    seconds: list[float] = field(default_factory=list)
    """Latency of each question of the other tenants, in seconds."""
    failed: Counter[str] = field(default_factory=Counter)
    greedy: Counter[str] = field(default_factory=Counter)
    """Outcomes of the greedy tenant's questions."""


async def _measure(options: argparse.Namespace) -> list[Figure]:
    names = [f"other-{number}" for number in range(options.others)]
    with tempfile.TemporaryDirectory() as scratch, Processes() as children:
        directory = Path(scratch)
        await asyncio.to_thread(_build, directory, [_GREEDY, *names], options)
        tokens = {
            name: add_key(directory / "keys.json", name, [Scope.ASK], None, tenant=name)
            for name in (_GREEDY, *names)
        }
        quota = TenantQuota(questions_per_second=options.quota)
        write_quotas(directory / "quotas.json", Quotas(by_tenant={_GREEDY: quota}))
        address = f"127.0.0.1:{free_ports(1)[0]}"
        arguments = ["standalone", "--index", str(directory / "index"), "--listen", address]
        arguments += ["--keys", str(directory / "keys.json"), "--log-level", "error"]
        arguments += ["--quotas", str(directory / "quotas.json")]
        children.start("server", arguments)
        clients = [
            AsyncClient(address, credentials=Credentials(token=tokens[name])) for name in names
        ]
        try:
            await _wait_ready(clients[0])
            own = AsyncClient(address, credentials=Credentials(token=tokens[_GREEDY]))
            async with own:
                costs = await _costs(children.pid("server"), clients[0], own, options.read)
            async with _greedy_process(address, tokens[_GREEDY], options.read) as greedy:
                rounds = [
                    await _run_round(number, clients, greedy, options)
                    for number in range(options.rounds)
                ]
        finally:
            for client in clients:
                await client.close()
    return [*costs, *(_figures(rounds) if rounds else ())]


async def _costs(server: int, other: AsyncClient, greedy: AsyncClient, read: int) -> list[Figure]:
    """Measures the processor time that an answer and a refusal by the quota take at the server.

    Unlike latencies, it hardly depends on other work of the machine. Blocks of both are
    interleaved. The processor time of an idle server is subtracted.
    """
    idle = await _used(server, asyncio.sleep(_IDLE_SECONDS)) / _IDLE_SECONDS
    answers: list[float] = []
    blocks: list[tuple[float, int]] = []
    for _ in range(_BLOCKS):
        for client, calls in ((other, 20), (greedy, 60)):
            await _ask_in_turn(client, _Phase(), calls // 10, read)  # uses up the quota
            phase, started = _Phase(), time.perf_counter()
            used = await _used(server, _ask_in_turn(client, phase, calls, read))
            used -= idle * (time.perf_counter() - started)
            if client is other:
                answers.append(used / calls * 1e3)
            elif refused := phase.failed["OverloadedError"]:
                # the quota has allowed the other calls
                blocks.append((used * 1e3 - (calls - refused) * median(answers), refused))
    refusals = [used / refused for used, refused in blocks]
    answer, refusal = (
        Figure("processor", name, median(costs), "ms", spread=(min(costs), max(costs)))
        for name, costs in (("an answer", answers), ("a refusal", refusals))
    )
    share = Figure("processor", "a refusal / an answer", refusal.value / answer.value, "times")
    return [answer, refusal, share]


async def _ask_in_turn(client: AsyncClient, phase: _Phase, calls: int, read: int) -> None:
    for _ in range(calls):
        await _ask(client, phase, read)


async def _used(server: int, work: Coroutine[Any, Any, None]) -> float:
    """Returns the processor time that the server uses during some work, in seconds."""
    before = processor_seconds(server)
    await work
    return processor_seconds(server) - before


def _build(directory: Path, tenants: Sequence[str], options: argparse.Namespace) -> None:
    """Builds an index whose passages are random words."""
    chance = random.Random(options.seed)
    with (directory / "rows.jsonl").open("w", encoding="utf-8") as file:
        for tenant in tenants:
            for number in range(options.passages):
                text = " ".join(chance.choices(_WORDS, k=60))
                row = {"id": f"p{number}", "title": "Report", "text": text, "tenant": tenant}
                file.write(json.dumps(row) + "\n")
    command = [sys.executable, "-m", "winnow", "index", "build", "--tenants"]
    files = ["--passages", str(directory / "rows.jsonl"), "--out", str(directory / "index")]
    subprocess.run([*command, *files], check=True, stdout=subprocess.DEVNULL)


async def _wait_ready(client: AsyncClient) -> None:
    async with asyncio.timeout(_READY_SECONDS):
        while True:
            with suppress(WinnowError):
                await client.ask("ready?", timeout=_TIMEOUT)
                return
            await asyncio.sleep(0.2)


@asynccontextmanager
async def _greedy_process(
    address: str, token: str, read: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs `bench.quotas.greedy`, which ends with the context."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.quotas.greedy", address, token, str(read)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # else Linux takes its time from that of the server
        env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
    )
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def _set_rate(greedy: asyncio.subprocess.Process, rate: float) -> Counter[str]:
    """Sets the rate of the greedy tenant; returns the outcomes since the last call."""
    assert greedy.stdin is not None
    assert greedy.stdout is not None
    greedy.stdin.write(f"{rate}\n".encode())
    return Counter(json.loads(await greedy.stdout.readline()))


async def _run_round(
    number: int,
    clients: Sequence[AsyncClient],
    greedy: asyncio.subprocess.Process,
    options: argparse.Namespace,
) -> dict[str, _Phase]:
    """Runs each phase once. The order of the phases moves on from round to round."""
    order = list(_FACTORS)
    order = order[number % len(order) :] + order[: number % len(order)]
    phases = {}
    for name in order:
        print(f"round {number + 1}, {name}", file=sys.stderr)
        rate = options.quota * _FACTORS[name]
        await _set_rate(greedy, rate)
        await asyncio.sleep(_SETTLING)
        await _set_rate(greedy, rate)  # forgets the outcomes so far
        phase = phases[name] = _Phase()
        async with asyncio.TaskGroup() as group:
            for place, client in enumerate(clients):
                offset = place / len(clients) / options.rate
                group.create_task(_ask_at_rate(client, phase, offset, options))
        phase.greedy = await _set_rate(greedy, 0.0)
    return phases


async def _ask_at_rate(
    client: AsyncClient, phase: _Phase, offset: float, options: argparse.Namespace
) -> None:
    """Asks at a fixed rate, also while earlier questions wait for their answers."""
    await asyncio.sleep(offset)
    async with asyncio.TaskGroup() as group:
        for _ in range(int(options.seconds * options.rate)):
            group.create_task(_ask(client, phase, options.read))
            await asyncio.sleep(1 / options.rate)


async def _ask(client: AsyncClient, phase: _Phase, read: int) -> None:
    started = time.perf_counter()
    try:
        await client.ask(
            "who signed the report?", passages_to_read=read, fresh=True, timeout=_TIMEOUT
        )
    except WinnowError as error:
        phase.failed[type(error).__name__] += 1
    phase.seconds.append(time.perf_counter() - started)


def _figures(rounds: Sequence[dict[str, _Phase]]) -> list[Figure]:
    """Returns the figures of all rounds; ratios are medians over blocks of consecutive rounds."""
    seconds = {name: [each for one in rounds for each in one[name].seconds] for name in _FACTORS}
    figures = []
    for name in _FACTORS:
        failed = sum(sum(one[name].failed.values()) for one in rounds)
        figures += quantile_figures("others", f"greedy {name}", seconds[name], 0.5, _LEVEL)
        figures.append(Figure("others", f"failed, greedy {name}", failed))
        if name != _ALONE:
            asked: Counter[str] = sum((one[name].greedy for one in rounds), Counter())
            figures.append(Figure("greedy", f"answered {name}", asked["answered"]))
            figures.append(Figure("greedy", f"refused {name}", asked["OverloadedError"]))
    for baseline in (_ALONE, _WITHIN):
        title = f"p95 beside four times the quota / {baseline}"
        figure = ratio_figure("others", title, seconds[_BEYOND], seconds[baseline], _LEVEL)
        figures.append(at_most(figure, _MAX_RATIO) if baseline == _WITHIN else figure)
    return figures
