"""A cluster of every kind of process, with metrics, and calls that change these."""

import asyncio
import contextlib
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import grpc
from conftest import QUESTIONS, Recorder
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tenacious import LONG, until

from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.client import Client
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.packaged import default_bundle, default_heads

_MERGED = 8
"""Writes after which a shard is merged; a test reaches them once or twice."""


@dataclass
class WatchedCluster:
    """A cluster with two shards that take writes, and a server each for encoding, heads and texts."""

    cluster: LocalCluster
    metrics: dict[str, list[str]]
    """Addresses of metrics by Prometheus job."""
    index: Path
    reader: str
    """Address of the server that reads texts."""
    _rounds: Iterator[int] = field(default_factory=itertools.count)

    def use(self) -> None:
        """Asks two questions, predicts, reads a text, feeds a passage; in the second round, takes a
        snapshot.
        """
        number = next(self._rounds)
        with (
            Client(self.cluster.address) as client,
            Client(self.cluster.feed) as fed,
            Client(self.reader) as reader,
        ):
            reader.read("Who built the bridge?", ["Ada Lind built the bridge."], timeout=LONG)
            for question, _ in QUESTIONS[:2]:
                client.ask(f"{question} {number}", timeout=LONG)  # none is remembered
            client.predict("book me a flight to Oslo", ["intent", "entities"], timeout=LONG)
            if number < 2 * _MERGED:
                fed.put({"id": f"fed-{number}", "text": f"Item {number} lies in drawer {number}."})
                fed.delete([f"fed-{number - 1}"])
        if number == 1:
            snapshots = str(self.index.with_name("snapshots"))
            take_snapshot(self.index, snapshots, Recorder(), lambda: datetime.now(UTC))


@contextlib.contextmanager
def watched(
    built: Path, directory: Path, journal: str = "", traces: str = ""
) -> Iterator[WatchedCluster]:
    """Serves a copy of an index with separate encoder and head servers, and reads texts.

    `traces` is the URL to which the front sends traces; empty for none.
    """
    index = shutil.copytree(built, directory / "index")
    ports = iter(free_ports(7))
    encoder, heads, reader, *measured = (f"127.0.0.1:{port}" for port in ports)
    plan = LocalPlan(
        index,
        default_bundle(),
        "127.0.0.1:0",
        metrics_listen=measured[0],
        node_metrics=True,
        feed_listen="127.0.0.1:0",
        http_listen="127.0.0.1:0",
        front=(
            *("--encoder-address", encoder, "--head-servers", heads),
            *(("--trace-to", traces) if traces else ()),
        ),
        node=(
            *("--merge-after", str(_MERGED)),
            *(("--journal", journal) if journal else ()),
        ),
    )
    quiet = ("--log-level", "error", "--drain-linger", "0")
    with Processes() as servers, LocalCluster(plan) as cluster:
        servers.start("encoder", ["encoder", *_listening(encoder, measured[1]), *quiet])
        store = ["--store", str(default_heads())]
        servers.start("heads", ["heads", "serve", *store, *_listening(heads, measured[2]), *quiet])
        servers.start("reader", ["reader", *_listening(reader, measured[3]), *quiet])
        cluster.start()
        asyncio.run(cluster.wait_ready())
        for address in (encoder, heads, reader):
            until(partial(_serves, address), 2 * LONG)
        jobs = {
            "winnow-front": [measured[0]],
            "winnow-node": cluster.node_metrics,
            "winnow-encoder": [measured[1]],
            "winnow-heads": [measured[2]],
            "winnow-reader": [measured[3]],
        }
        yield WatchedCluster(cluster, jobs, index, reader)


def _serves(address: str) -> bool:
    with grpc.insecure_channel(address) as channel, contextlib.suppress(grpc.RpcError):
        request = health_pb2.HealthCheckRequest()
        reply = health_pb2_grpc.HealthStub(channel).Check(request, timeout=LONG)
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)
    return False


def _listening(address: str, metrics: str) -> list[str]:
    return ["--listen", address, "--metrics-listen", metrics]
