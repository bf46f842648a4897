"""What a cluster that is asked nothing costs: processor time of a front and of every content node.

    python -m bench.idle --index INDEX [--seconds 30] [--bar 1.0] [--json]

Starts the cluster on this machine, asks a few questions, lets it be for `--settle` seconds, and
then counts processor time (user and system, all threads) as the kernel does (Linux). Prints percent
of one core for each process and for all together; exits with 1 if all take more than `--bar`.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

from winnow import signals
from winnow.bundle import default_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client.messages import AnswerClient
from winnow.v1 import answer_pb2

_TICKS = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12
"""Places in /proc/PID/stat, counted from behind the name of the command."""
_QUESTIONS, _DEADLINE = 5, 10.0


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.idle", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=30.0, help="to count processor time for")
    parser.add_argument("--settle", type=float, default=15.0, help="seconds before counting begins")
    parser.add_argument("--bar", type=float, default=1.0, help="most percent of a core, of all")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signals.end_on_signals()
    plan = LocalPlan(options.index, default_bundle(), "127.0.0.1:0")
    with LocalCluster(plan) as cluster:
        cluster.start()
        signals.run(_use(cluster))
        time.sleep(options.settle)
        names = ["front", *(f"node {number}" for number in range(len(cluster.nodes)))]
        shares = measured({name: cluster.processes.pid(name) for name in names}, options.seconds)
    total = sum(shares.values())
    if options.json:
        print(json.dumps({"processor": _processor(), "percent": shares, "all": total}, indent=2))
    else:
        for name, share in {**shares, "all": total}.items():
            print(f"{name:8} {share:5.2f} % of a core")
        print(f"on {_processor()}")
    return int(total > options.bar)


async def _use(cluster: LocalCluster) -> None:
    """Waits until it serves, and asks: what was never used may have work left to do."""
    await cluster.wait_ready()
    async with AnswerClient(cluster.address) as client:
        for number in range(_QUESTIONS):
            request = answer_pb2.AnswerRequest(question=f"Who was emperor number {number}?")
            await client.ask(request, _DEADLINE)


def measured(pids: dict[str, int], seconds: float) -> dict[str, float]:
    """Percent of a core that each process takes, by its name, over so many seconds from now."""
    began, before = time.monotonic(), {name: spent(pid) for name, pid in pids.items()}
    time.sleep(seconds)
    passed = time.monotonic() - began
    return {name: 100 * (spent(pid) - before[name]) / passed for name, pid in pids.items()}


def spent(pid: int) -> float:
    """Seconds of processor time that a process has used so far, to a hundredth (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS


def _processor() -> str:
    """The processor's name, as Linux has it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


if __name__ == "__main__":
    sys.exit(main())
