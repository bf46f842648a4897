"""A content node of the simulation, composed as `winnow.content_node` composes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from simulation.channel import SimulatedServer
from winnow.assignment import AssignmentFile
from winnow.bundle import Bundle
from winnow.content_node.composing.assigned import assigned_shards
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.composing.catalog import open_node_indexes
from winnow.content_node.composing.node_indexes import NodeIndexes
from winnow.content_node.composing.parts import open_node_parts
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.settings import NodeSettings
from winnow.content_node.snapshots.contents import open_shard_files
from winnow.content_node.transfer.copies import OpenCopies
from winnow.content_node.transfer.remote import PeerNodes
from winnow.content_node.transfer.servicer import ShardTransferServicer
from winnow.rpc.interceptor import CallInterceptor
from winnow.security.peers import PLAIN_TEXT
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

Shards = RunningShards | AssignedShards | NodeIndexes
JOURNAL_URL = "nats://journal:4222"
_DEADLINE = 2.0


class _NoRuntimes:
    """Takes the place of `RuntimeMetrics`: no model runs."""

    def chooser(self, name: str) -> None:
        return None


@dataclass(slots=True)
class RunningNode:
    """A content node that runs."""

    shards: Shards
    server: SimulatedServer
    registry: CollectorRegistry

    @property
    def of_index(self) -> Callable[[str], ServedShards] | None:
        """Returns the shards of an index by its id; None without a catalog."""
        return self.shards.indexes.of_index if isinstance(self.shards, NodeIndexes) else None

    def served(self, index_id: str = "") -> ServedShards:
        """Returns the shards of an index; those of the only index for an empty id."""
        if isinstance(self.shards, NodeIndexes):
            return self.shards.indexes.of_index(index_id)
        return self.shards.served

    def numbers(self, index_id: str = "") -> list[int]:
        """Returns the numbers of the shards of an index that the node has, served or not."""
        if index_id:
            own = f"index-{index_id}"
            found = [each for each in self.shards.all if each.directory.parent.name == own]
        else:
            found = list(self.shards.all)
        numbers = (each.served.number for each in found)
        return sorted(each for each in numbers if each is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """What all nodes of a cluster have in common."""

    bundle: Bundle
    journal: bool
    merge_after: int

    def settings(self, **own: Any) -> NodeSettings:
        """Returns the settings of a node; `own` are those that other nodes lack."""
        return NodeSettings.model_validate(
            {
                "bundle": self.bundle.directory,
                "feed": True,
                "journal": JOURNAL_URL if self.journal else "",
                "threads": 2,
                "reader_threads": 2,
                "reader_nice": 0,
                "exact": True,
                "merge_after": self.merge_after,
                "max_unmerged": 1_000,
                **own,
            }
        )

    def settings_of(self, name: str, data: Path, **followed: str) -> NodeSettings:
        """Returns the settings of a node that follows a file, with its shards below `data`."""
        return self.settings(name=name, address=f"{name}:9000", data=data, **followed)


def open_node(options: NodeOptions, directories: Sequence[Path]) -> RunningNode:
    """Composes a node of some shards, which are not loaded yet."""
    registry, settings = CollectorRegistry(), options.settings(shard=list(directories))
    parts = open_node_parts(settings, options.bundle, registry, no_runtimes(), len(directories))
    shards = RunningShards(dict.fromkeys(directories, ""), parts, registry, _set_serving)
    return _serve(shards, registry)


def open_assigned_node(
    options: NodeOptions, name: str, data: Path, assignment: Path
) -> RunningNode:
    """Composes a node that follows an assignment. Its shards are in the directory `data`."""
    registry = CollectorRegistry()
    settings = options.settings_of(name, data, assignment=str(assignment))
    addresses: dict[str, str] = {}
    peers = PeerNodes(name, lambda node: addresses.get(node, ""))
    parts = open_node_parts(settings, options.bundle, registry, no_runtimes(), 1, peers)
    shards = assigned_shards(
        settings,
        parts,
        registry,
        AssignmentFile(settings.assignment),
        addresses=addresses,
        set_serving=_set_serving,
    )
    return _with_transfer(_serve(shards, registry))


def open_named_node(options: NodeOptions, name: str, data: Path, catalog: Path) -> RunningNode:
    """Composes a node that follows a catalog. Its indexes are in the directory `data`."""
    registry = CollectorRegistry()
    shards, _ = open_node_indexes(
        options.settings_of(name, data, indexes=str(catalog)),
        options.bundle,
        registry,
        runtimes=no_runtimes(),
        set_serving=_set_serving,
        peers=PLAIN_TEXT,
    )
    return _with_transfer(_serve(shards, registry))


def no_runtimes() -> Any:
    """Returns what takes the place of `RuntimeMetrics`."""
    return _NoRuntimes()


async def _set_serving(serving: bool) -> None:
    """Does nothing: fronts look at reports, not at the health service."""


def _serve(shards: Shards, registry: CollectorRegistry) -> RunningNode:
    """Adds the services of a node to a server."""
    server = SimulatedServer(CallInterceptor(RpcMetrics(registry), quiet=True))
    running, grpc = RunningNode(shards, server, registry), _grpc(server)
    own = running.served(), _DEADLINE, running.of_index
    shard_pb2_grpc.add_ShardServiceServicer_to_server(ShardServicer(*own), grpc)
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(ShardFeedServicer(*own), grpc)
    shard_passage_pb2_grpc.add_ShardPassageServiceServicer_to_server(
        ShardPassageServicer(*own), grpc
    )
    return running


def _with_transfer(running: RunningNode) -> RunningNode:
    """Adds the service that sends shards to other nodes, and to commands."""
    copies = OpenCopies(open_shard_files)
    transfer = ShardTransferServicer(running.served(), copies, running.of_index)
    shard_transfer_pb2_grpc.add_ShardTransferServiceServicer_to_server(
        transfer, _grpc(running.server)
    )
    return running


def _grpc(server: SimulatedServer) -> Any:
    return server
