"""A content node of the simulation, composed as `winnow.content_node` composes it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from simulation.channel import SimulatedServer
from simulation.models import SimulatedReader
from winnow.bundle import Bundle
from winnow.content_node.composing.parts import open_node_parts
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.settings import NodeSettings
from winnow.rpc.interceptor import CallInterceptor
from winnow.shard_service.feed_servicer import ShardFeedServicer
from winnow.shard_service.passage_servicer import ShardPassageServicer
from winnow.shard_service.servicer import ShardServicer
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import shard_feed_pb2_grpc, shard_passage_pb2_grpc, shard_pb2_grpc

JOURNAL_URL = "nats://journal:4222"
_DEADLINE = 2.0


class _NoRuntimes:
    """Takes the place of `RuntimeMetrics`: no model runs."""

    def chooser(self, name: str) -> None:
        return None


@dataclass(slots=True)
class RunningNode:
    """A content node that runs."""

    shards: RunningShards
    server: SimulatedServer
    registry: CollectorRegistry


def open_node(
    bundle: Bundle, directories: Sequence[Path], *, journal: bool, merge_after: int
) -> RunningNode:
    """Composes a node; its shards are not loaded yet."""
    registry = CollectorRegistry()
    settings = NodeSettings.model_validate(
        {
            "shard": list(directories),
            "bundle": bundle.directory,
            "feed": True,
            "journal": JOURNAL_URL if journal else "",
            "threads": 2,
            "reader_threads": 2,
            "reader_nice": 0,
            "exact": True,
            "merge_after": merge_after,
            "max_unmerged": 1_000,
        }
    )
    runtimes: Any = _NoRuntimes()
    parts = open_node_parts(settings, bundle, registry, runtimes, len(directories))
    reader: Any = SimulatedReader(bundle)
    parts = replace(parts, reader=reader)
    server = SimulatedServer(CallInterceptor(RpcMetrics(registry), quiet=True))

    async def set_serving(serving: bool) -> None:
        """Does nothing: fronts look at reports, not at the health service."""

    shards = RunningShards(dict.fromkeys(directories, ""), parts, registry, set_serving)
    grpc: Any = server
    feed = ShardFeedServicer(shards.served, _DEADLINE)
    passages = ShardPassageServicer(shards.served, _DEADLINE)
    shard_pb2_grpc.add_ShardServiceServicer_to_server(ShardServicer(shards.served, _DEADLINE), grpc)
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(feed, grpc)
    shard_passage_pb2_grpc.add_ShardPassageServiceServicer_to_server(passages, grpc)
    return RunningNode(shards, server, registry)
