"""Composes a content node and runs it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle
from winnow.content_node.composing.assigned import open_assigned
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.composing.catalog import open_node_indexes
from winnow.content_node.composing.node_indexes import NodeIndexes
from winnow.content_node.composing.parts import NodeParts, open_node_parts
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.settings import NodeSettings
from winnow.content_node.snapshots.contents import open_shard_files
from winnow.content_node.startup_checks import check_reader, shards_to_serve
from winnow.content_node.transfer.copies import OpenCopies
from winnow.content_node.transfer.servicer import TRANSFER_SERVICE, ShardTransferServicer
from winnow.heap import bound_arenas
from winnow.rpc import process
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.service import serve_metrics
from winnow.security.from_settings import peer_channels, server_security
from winnow.security.metrics import CertificateMetrics
from winnow.shard_service.feed_servicer import FEED_SERVICE, MAX_WRITE_BYTES, ShardFeedServicer
from winnow.shard_service.passage_servicer import PASSAGE_SERVICE, ShardPassageServicer
from winnow.shard_service.servicer import MAX_MESSAGE_BYTES, SERVICE, ShardServicer
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.telemetry.tracing.tracer import Tracer
from winnow.v1 import (
    shard_feed_pb2_grpc,
    shard_passage_pb2_grpc,
    shard_pb2_grpc,
    shard_transfer_pb2_grpc,
)

_PENDING_MESSAGES = 32
"""Messages of the maximum size that may be received at the same time."""


def run(settings: NodeSettings) -> None:
    """Serves shards until SIGTERM or SIGINT, which also end a process that is loading."""
    bound_arenas()
    for loading in process.run(settings, partial(_run, settings)):
        loading.exit_if_running()


async def _run(
    settings: NodeSettings, registry: CollectorRegistry, tracer: Tracer
) -> Sequence[DaemonWork[Any]]:
    certificates = CertificateMetrics(registry)
    server = _build_server(settings, registry, tracer, certificates)
    serve_metrics(settings.metrics_listen, registry)
    bundle = await process.load_configured_bundle(settings, registry)
    check_reader(settings, bundle)
    shards, parts = _open_shards(settings, bundle, registry, server, certificates)
    served, of_index = _served_shards(shards)
    feed = ShardFeedServicer(served, settings.default_deadline, of_index)
    passages = ShardPassageServicer(served, settings.default_deadline, of_index)
    servicer = ShardServicer(served, settings.default_deadline, of_index)
    shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, server.grpc)
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(feed, server.grpc)
    shard_passage_pb2_grpc.add_ShardPassageServiceServicer_to_server(passages, server.grpc)
    copies = OpenCopies(open_shard_files)
    transfer = ShardTransferServicer(served, copies, of_index)
    shard_transfer_pb2_grpc.add_ShardTransferServiceServicer_to_server(transfer, server.grpc)
    try:
        await process.serve(server, settings, shards.load, shards.start_leaving)
    finally:
        await copies.close()
        await shards.close()
        parts.close()
    return [shard.loading for shard in shards.all]


def _open_shards(
    settings: NodeSettings,
    bundle: Bundle,
    registry: CollectorRegistry,
    server: Server,
    certificates: CertificateMetrics,
) -> tuple[RunningShards | AssignedShards | NodeIndexes, NodeParts]:
    """Opens the shards that the settings name, or those that are assigned to the node."""
    runtimes = RuntimeMetrics(registry)
    if settings.indexes:
        return open_node_indexes(
            settings,
            bundle,
            registry,
            runtimes=runtimes,
            set_serving=server.set_serving,
            peers=peer_channels(settings, certificates),
        )
    if settings.assignment:
        return open_assigned(
            settings,
            bundle,
            registry,
            runtimes=runtimes,
            set_serving=server.set_serving,
            peers=peer_channels(settings, certificates),
        )
    directories = shards_to_serve(settings)
    parts = open_node_parts(settings, bundle, registry, runtimes, shards=len(directories))
    return RunningShards(directories, parts, registry, server.set_serving), parts


def _served_shards(
    shards: RunningShards | AssignedShards | NodeIndexes,
) -> tuple[ServedShards, Callable[[str], ServedShards] | None]:
    """Returns the shards of the default index, and a function that returns those of any index."""
    if isinstance(shards, NodeIndexes):
        return shards.indexes.of_index(""), shards.indexes.of_index
    return shards.served, None


def _build_server(
    settings: NodeSettings,
    registry: CollectorRegistry,
    tracer: Tracer,
    certificates: CertificateMetrics,
) -> Server:
    max_bytes = MAX_WRITE_BYTES if settings.feed else MAX_MESSAGE_BYTES
    return Server(
        services=[SERVICE, PASSAGE_SERVICE, FEED_SERVICE, TRANSFER_SERVICE],
        interceptor=CallInterceptor(RpcMetrics(registry), quiet=True, tracer=tracer),
        max_message_bytes=max_bytes,
        max_pending_bytes=_PENDING_MESSAGES * max_bytes,
        security=server_security(settings, certificates),
    )
