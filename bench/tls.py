"""What certificates and keys cost: the same questions in plain text, by mutual TLS, and with keys.

    python -m bench.tls --index INDEX [--questions FILE] [--rounds 20] [--at-once 1] [--json]

Starts three clusters on this machine, alike but for certificates between all parts, and a file of
keys. Ten questions go to one cluster, the same ten to the next, round after round, in another order
in each; answers are not remembered. Says the median and the 95th percentile of the milliseconds of
a question, and milliseconds of processor time of a question, of all processes of a cluster; then,
apart, the milliseconds until the first reply on a new connection, which holds the handshake.

Exits with 1 if the median is more than `--bar` percent higher with mutual TLS than without. Needs
the command openssl, and what bench.tracing needs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.tracing import BLOCK, Way, measure
from winnow import signals
from winnow.bundle import default_bundle
from winnow.cli.keys.changing import add
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.questions import read_questions
from winnow.client import Credentials
from winnow.client.messages import AnswerClient
from winnow.keys.scope import Scope
from winnow.packaged import demo_corpus
from winnow.settings.common import cores

_CONNECTIONS = 30
_PLAIN, _MUTUAL, _KEYED = "plain text", "mutual TLS", "mutual TLS and keys"
_OPENSSL = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 2 \
  -subj /CN=authority -keyout ca.key -out ca.crt
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc \
  -subj /CN=winnow -keyout node.key -out node.csr
printf 'subjectAltName=IP:127.0.0.1' > node.ext
openssl x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
  -extfile node.ext -out node.crt
"""


@dataclass(frozen=True, slots=True)
class Files:
    """An authority, and one certificate for all parts."""

    directory: Path

    @property
    def ca(self) -> Path:
        """The authority."""
        return self.directory / "ca.crt"

    @property
    def cert(self) -> Path:
        """The certificate."""
        return self.directory / "node.crt"

    @property
    def key(self) -> Path:
        """Its private key."""
        return self.directory / "node.key"

    def make(self) -> None:
        """Makes all of them."""
        subprocess.run(
            ["sh", "-e"], input=_OPENSSL.encode(), cwd=self.directory, check=True, stderr=-1
        )

    def flags(self, prefix: str, ca: str) -> tuple[str, ...]:
        """Flags that name them."""
        named = {f"{prefix}-cert": self.cert, f"{prefix}-key": self.key, ca: self.ca}
        return tuple(word for name, path in named.items() for word in (f"--{name}", str(path)))


def plans(index: Path, files: Files) -> dict[str, LocalPlan]:
    """The three clusters."""
    bundle, free = default_bundle(), "127.0.0.1:0"
    served = files.flags("tls", "tls-client-ca")
    front = (*served, *files.flags("peer", "peer-ca"))
    keys = files.directory / "keys.json"
    token = add(keys, "bench", [Scope.ASK], None)
    proved = Credentials(files.ca, files.cert, files.key)
    return {
        _PLAIN: LocalPlan(index, bundle, free),
        _MUTUAL: LocalPlan(index, bundle, free, front=front, node=served, credentials=proved),
        _KEYED: LocalPlan(
            index,
            bundle,
            free,
            front=(*front, "--keys", str(keys)),
            node=served,
            credentials=replace(proved, token=token),
        ),
    }


async def connected(way: Way, credentials: Credentials | None) -> float:
    """Milliseconds until the first reply on a connection of its own."""
    started = time.perf_counter()
    async with AnswerClient(way.cluster.address, credentials=credentials) as client:
        if not await client.serving():
            raise RuntimeError(f"{way.cluster.address} does not serve")
        return 1e3 * (time.perf_counter() - started)


async def run(options: argparse.Namespace, files: Files) -> dict[str, Any]:
    """Starts everything, and measures."""
    texts = [each.question for each in read_questions(options.questions)][: options.limit]
    with ExitStack() as stack:
        ways: dict[str, Way] = {}
        wanted = plans(options.index, files)
        for name, plan in wanted.items():
            cluster = stack.enter_context(LocalCluster(plan))
            cluster.start()
            await cluster.wait_ready()
            client = AnswerClient(cluster.address, credentials=plan.credentials)
            ways[name] = Way(cluster, client)
        for way in ways.values():
            await way.ask(texts[:BLOCK], 1)
            way.milliseconds, way.processor = [], 0.0
        await measure([*ways.values()], texts, options.rounds, options.at_once)
        first = {name: list[float]() for name in ways}
        for _ in range(_CONNECTIONS):
            for name, way in ways.items():
                first[name].append(await connected(way, wanted[name].credentials))
    return report(ways, first)


def report(ways: dict[str, Way], first: dict[str, list[float]]) -> dict[str, Any]:
    """The figures of all ways, and of each beside plain text."""
    rows: dict[str, Any] = {
        name: {**way.row(), "first_reply_ms": round(median(first[name]), 3)}
        for name, way in ways.items()
    }
    rows["questions"] = len(ways[_PLAIN].milliseconds)
    for name in (_MUTUAL, _KEYED):
        rows[name]["more_percent"] = {
            figure: round(100 * (rows[name][figure] / rows[_PLAIN][figure] - 1), 2)
            for figure in ways[name].row()
        }
    return rows


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.tls", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=demo_corpus() / "questions.jsonl")
    parser.add_argument("--limit", type=int, default=200, help="most questions")
    parser.add_argument("--rounds", type=int, default=20, help="of ten questions each way")
    parser.add_argument("--at-once", type=int, default=1, help="questions at the same time")
    parser.add_argument("--bar", type=float, default=3.0, help="most percent of the median")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signals.end_on_signals()
    with tempfile.TemporaryDirectory() as directory:
        files = Files(Path(directory))
        files.make()
        rows = signals.run(run(options, files))
    if options.json:
        print(json.dumps({"cores": cores(), "at_once": options.at_once, **rows}, indent=2))
    else:
        for name in (_PLAIN, _MUTUAL, _KEYED):
            row = dict(rows[name])
            more = row.pop("more_percent", {})
            shown = ", ".join(f"{figure} {value:8.2f}" for figure, value in row.items())
            beside = f"  ({more['p50_ms']:+.2f} % at p50)" if more else ""
            print(f"{name:20} {shown}{beside}")
        print(f"{rows['questions']} questions each way; {cores()} cores")
    return int(rows[_MUTUAL]["more_percent"]["p50_ms"] > options.bar)


if __name__ == "__main__":
    sys.exit(main())
