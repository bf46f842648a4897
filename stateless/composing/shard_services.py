"""Composes the services by which other fronts use the shards of this front."""

from winnow.rpc.server import Server
from winnow.rpc.service import Listener
from winnow.shard_service.feed_servicer import FEED_SERVICE, MAX_WRITE_BYTES, ShardFeedServicer
from winnow.shard_service.passage_servicer import PASSAGE_SERVICE, ShardPassageServicer
from winnow.shard_service.servicer import SERVICE, ShardServicer
from winnow.stateless.cluster.served_cluster import ServedCluster
from winnow.stateless.composing.cluster import OpenCluster
from winnow.stateless.composing.feed import open_writers
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.nodes import NodeSource
from winnow.stateless.feed.forwarding import ForwardingShardWriter
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.storing import WriteRouter
from winnow.v1 import shard_feed_pb2_grpc, shard_passage_pb2_grpc, shard_pb2_grpc

_PENDING_MESSAGES = 32
"""Number of messages of the maximum size that may be received at the same time."""


def open_served_cluster(
    front: Front, source: NodeSource, cluster: OpenCluster, metrics: FeedMetrics
) -> ServedCluster:
    """Opens the shards of the front as a content node. The front closes their writers."""
    writers = open_writers(front, source, cluster)
    snapshot = cluster.snapshot
    router = WriteRouter(writers, metrics, record_write=snapshot.record_write)
    return ServedCluster(
        cluster.builder,
        cluster.nodes,
        lambda shard: ForwardingShardWriter(shard, router, writers, snapshot.word_sources),
        front.bundle.manifest.encoding_fingerprint,
    )


def serve_shards(front: Front, served: ServedCluster) -> FrontPart:
    """Serves the shards of the front on a separate port, without keys."""
    settings = front.settings
    server = Server(
        services=[SERVICE, PASSAGE_SERVICE, FEED_SERVICE],
        interceptor=front.interceptor.quieted(),
        max_message_bytes=MAX_WRITE_BYTES,
        max_pending_bytes=_PENDING_MESSAGES * MAX_WRITE_BYTES,
        security=front.access.security,
    )
    shard_pb2_grpc.add_ShardServiceServicer_to_server(
        ShardServicer(served, settings.default_deadline), server.grpc
    )
    shard_passage_pb2_grpc.add_ShardPassageServiceServicer_to_server(
        ShardPassageServicer(served, settings.default_deadline), server.grpc
    )
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(
        ShardFeedServicer(served, settings.default_deadline), server.grpc
    )
    return FrontPart(
        servers=[Listener(server, settings.shards_listen)], start_leaving=served.start_leaving
    )
