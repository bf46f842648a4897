"""Composes the shards of a node that follows an assignment."""

import asyncio
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry

from winnow.assignment import AssignmentFile
from winnow.bundle import Bundle
from winnow.content_node.assigned.followed import ReadsAssignment
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.composing.parts import NodeParts, open_node_parts
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.settings import NodeSettings
from winnow.content_node.transfer.remote import PeerNodes
from winnow.deadline import Sleep
from winnow.domain.index_copy import IndexWrites
from winnow.security.peers import PeerChannels
from winnow.telemetry.runtimes import RuntimeMetrics


def open_assigned(
    settings: NodeSettings,
    bundle: Bundle,
    registry: CollectorRegistry,
    *,
    runtimes: RuntimeMetrics,
    set_serving: Callable[[bool], Awaitable[None]],
    peers: PeerChannels,
    sleep: Sleep = asyncio.sleep,
) -> tuple[AssignedShards, NodeParts]:
    """Returns the shards of a node that follows an assignment, and the parts that they share.

    The caller closes the shards, and the pool of the parts.

    Raises UnavailableError if fsspec does not support the URL of the assignment.
    """
    addresses: dict[str, str] = {}
    peer_nodes = PeerNodes(settings.name, lambda node: addresses.get(node, ""), peers)
    parts = open_node_parts(settings, bundle, registry, runtimes, shards=1, peer_nodes=peer_nodes)
    assigned = assigned_shards(
        settings,
        parts,
        registry,
        AssignmentFile(settings.assignment),
        addresses=addresses,
        set_serving=set_serving,
        watch_files=peers.watch_files if settings.peer_ca is not None else None,
        sleep=sleep,
    )
    return assigned, parts


def assigned_shards(
    settings: NodeSettings,
    parts: NodeParts,
    registry: CollectorRegistry,
    file: ReadsAssignment,
    *,
    addresses: dict[str, str],
    set_serving: Callable[[bool], Awaitable[None]],
    writes: Callable[[], IndexWrites] = IndexWrites,
    watch_files: Callable[[], Awaitable[None]] | None = None,
    sleep: Sleep = asyncio.sleep,
) -> AssignedShards:
    """Returns the shards of one index that are assigned to this node.

    `addresses` gets the addresses of the nodes by name, for the `peer_nodes` of `parts`. The other
    arguments are those of `AssignedShards` and `RunningShards`.
    """
    assert parts.peer_nodes is not None  # shards move to this node
    served = ServedShards(
        joint=parts.joint, node=settings.name, address=settings.peer_address, is_starting=True
    )
    return AssignedShards(
        settings,
        RunningShards({}, parts, registry, set_serving, served=served),
        parts.peer_nodes,
        file,
        addresses=addresses,
        writes=writes,
        watch_files=watch_files,
        sleep=sleep,
    )
