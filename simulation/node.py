"""A content node of the simulation, composed as `winnow.content_node` composes it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from simulation.channel import SimulatedServer
from simulation.models import SimulatedReader
from winnow.assignment import AssignmentFile
from winnow.bundle import Bundle
from winnow.content_node.composing.assigned import assigned_shards
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.composing.parts import NodeParts, open_node_parts
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.settings import NodeSettings
from winnow.content_node.snapshots.contents import open_shard_files
from winnow.content_node.transfer.copies import OpenCopies
from winnow.content_node.transfer.remote import PeerNodes
from winnow.content_node.transfer.servicer import ShardTransferServicer
from winnow.rpc.interceptor import CallInterceptor
from winnow.shard_service.feed_servicer import ShardFeedServicer
from winnow.shard_service.passage_servicer import ShardPassageServicer
from winnow.shard_service.servicer import ShardServicer
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import (
    shard_feed_pb2_grpc,
    shard_passage_pb2_grpc,
    shard_pb2_grpc,
    shard_transfer_pb2_grpc,
)

JOURNAL_URL = "nats://journal:4222"
_DEADLINE = 2.0


class _NoRuntimes:
    """Takes the place of `RuntimeMetrics`: no model runs."""

    def chooser(self, name: str) -> None:
        return None


@dataclass(slots=True)
class RunningNode:
    """A content node that runs."""

    shards: RunningShards | AssignedShards
    server: SimulatedServer
    registry: CollectorRegistry

    def numbers(self) -> list[int]:
        """Returns the numbers of the shards that the node has, served or not."""
        found = (each.served.number for each in self.shards.all)
        return sorted(each for each in found if each is not None)


def open_node(
    bundle: Bundle, directories: Sequence[Path], *, journal: bool, merge_after: int
) -> RunningNode:
    """Composes a node of some shards, which are not loaded yet."""
    registry = CollectorRegistry()
    settings = _settings(bundle, journal, merge_after, shard=list(directories))
    parts = open_node_parts(settings, bundle, registry, _runtimes(), len(directories))
    parts = _with_reader(parts, bundle)
    shards = RunningShards(dict.fromkeys(directories, ""), parts, registry, _set_serving)
    return _serve(shards, registry)


def open_assigned_node(
    bundle: Bundle, name: str, data: Path, assignment: Path, *, journal: bool, merge_after: int
) -> RunningNode:
    """Composes a node that follows an assignment. Its shards are in the directory `data`."""
    registry = CollectorRegistry()
    settings = _settings(
        bundle,
        journal,
        merge_after,
        name=name,
        address=f"{name}:9000",
        data=data,
        assignment=str(assignment),
    )
    addresses: dict[str, str] = {}
    peers = PeerNodes(name, lambda node: addresses.get(node, ""))
    parts = open_node_parts(settings, bundle, registry, _runtimes(), 1, peers)
    shards = assigned_shards(
        settings,
        _with_reader(parts, bundle),
        registry,
        AssignmentFile(settings.assignment),
        addresses=addresses,
        set_serving=_set_serving,
    )
    running = _serve(shards, registry)
    grpc: Any = running.server
    transfer = ShardTransferServicer(shards.served, OpenCopies(open_shard_files))
    shard_transfer_pb2_grpc.add_ShardTransferServiceServicer_to_server(transfer, grpc)
    return running


def _settings(bundle: Bundle, journal: bool, merge_after: int, **own: Any) -> NodeSettings:
    return NodeSettings.model_validate(
        {
            "bundle": bundle.directory,
            "feed": True,
            "journal": JOURNAL_URL if journal else "",
            "threads": 2,
            "reader_threads": 2,
            "reader_nice": 0,
            "exact": True,
            "merge_after": merge_after,
            "max_unmerged": 1_000,
            **own,
        }
    )


def _runtimes() -> Any:
    return _NoRuntimes()


def _with_reader(parts: NodeParts, bundle: Bundle) -> NodeParts:
    reader: Any = SimulatedReader(bundle)
    return replace(parts, reader=reader)


async def _set_serving(serving: bool) -> None:
    """Does nothing: fronts look at reports, not at the health service."""


def _serve(shards: RunningShards | AssignedShards, registry: CollectorRegistry) -> RunningNode:
    """Adds the services of a node to a server."""
    server = SimulatedServer(CallInterceptor(RpcMetrics(registry), quiet=True))
    grpc: Any = server
    feed = ShardFeedServicer(shards.served, _DEADLINE)
    passages = ShardPassageServicer(shards.served, _DEADLINE)
    shard_pb2_grpc.add_ShardServiceServicer_to_server(ShardServicer(shards.served, _DEADLINE), grpc)
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(feed, grpc)
    shard_passage_pb2_grpc.add_ShardPassageServiceServicer_to_server(passages, grpc)
    return RunningNode(shards, server, registry)
