"""A cluster over several hosts, all on this machine: rolled, bereft of hosts, cut in two.

    python -m bench.topology --index INDEX --questions FILE [--only NAME] [--seconds N] [--json]

Every process has a host of its own, which is a network namespace: two racks, each with a front, a
content node for every shard and a client; names come from a DNS server on a further host. It needs
Linux, root, `ip` (iproute2) and `dnsmasq` (dnsmasq-base), and removes what it made. Questions stay
in that network. The processors are shared by all, so that latencies say little and losses much.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.topology.askers import Askers
from bench.topology.cluster import FRONT_PORT, FRONTS, Cluster, environment
from bench.topology.courses import COURSES, Stage
from bench.topology.figures import Figures, figures
from bench.topology.names import Names
from bench.topology.network import made
from winnow import signals

_RESOLVER = "10.77.0.2"
_RACKS = ("a", "b")
_BEFORE = "before"
_WIDTH = 140
"""Characters of a line that goes into a file."""


def main() -> int:
    """Plays the courses that were asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.topology", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--only", choices=COURSES, action="append", help="may be repeated")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    parser.add_argument("--settling", type=float, default=10.0, help="seconds between replacements")
    parser.add_argument("--rate", type=float, default=5.0, help="questions a second of each client")
    parser.add_argument("--log", type=Path, help="file for what the processes say")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    missing = [each for each in ("ip", "dnsmasq") if shutil.which(each) is None]
    if missing or os.geteuid() != 0:
        print(f"needs root and {', '.join(missing) or 'nothing else'}", file=sys.stderr)
        return 2
    signals.end_on_signals()
    with Console(stderr=True).status("starting") as status:
        askers = Askers()
        signals.run(_play(options, askers, status.update))
    seen = {
        phase: {client: figures(rows) for client, rows in sorted(clients.items())}
        for phase, clients in askers.rows.items()
        if phase
    }
    if options.json:
        said = {phase: {who: asdict(each) for who, each in seen[phase].items()} for phase in seen}
        print(json.dumps(said, indent=2))
    else:
        width = None if sys.stdout.isatty() else _WIDTH
        Console(highlight=False, width=width).print(_table(seen))
    return 0


async def _play(options: argparse.Namespace, askers: Askers, say: Callable[[str], None]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        network = stack.enter_context(made(f"winnow{os.getpid()}", _RESOLVER))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        resolver = network.add("dns", _RACKS[0], _RESOLVER)
        names = stack.enter_context(Names(resolver, directory))
        log = stack.enter_context((options.log or directory / "log").open("wb"))
        cluster = stack.enter_context(Cluster(network, names, options.index, log))
        for shard in range(cluster.shards):
            for rack in _RACKS:
                await cluster.start(cluster.add_node(shard, rack))
        for rack in _RACKS:
            await cluster.start(cluster.add_front(f"front{rack}", rack))
        for rack in _RACKS:
            client = network.add(f"client{rack}", rack)
            target = f"dns:///{FRONTS}:{FRONT_PORT}"
            await stack.enter_async_context(
                askers.asking(client, target, options.questions, options.rate, environment())
            )
        stage = Stage(cluster, askers, options.seconds, options.settling, say)
        await asyncio.sleep(options.settling)
        await stage.phase(_BEFORE)
        for name in options.only or COURSES:
            await COURSES[name](stage)
            await stage.phase(f"after {name}")


def _table(seen: dict[str, dict[str, Figures]]) -> Table:
    heads = (
        "phase",
        "client",
        "questions",
        "failed",
        "in part",
        "for s",
        "p50 ms",
        "p99",
        "slowest",
    )
    table = Table(*heads, "why")
    for phase, clients in seen.items():
        for client, each in clients.items():
            table.add_row(
                phase,
                client,
                str(each.questions),
                str(each.failed),
                str(each.partial),
                f"{each.troubled:.1f}",
                f"{each.p50_ms:.0f}",
                f"{each.p99_ms:.0f}",
                f"{each.slowest_ms:.0f}",
                each.statuses,
            )
    return table


if __name__ == "__main__":
    sys.exit(main())
