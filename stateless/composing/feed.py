"""Has a front take passages, on a separate port."""

import asyncio

from winnow.inference.fair_threads import FairThreads
from winnow.rpc.server import Server
from winnow.rpc.service import Listener
from winnow.stateless.composing.cluster import OpenCluster
from winnow.stateless.composing.front import Front, Part
from winnow.stateless.composing.nodes import NodeSource
from winnow.stateless.feed.admission import FeedAdmission
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.encoding import FeedEncoder
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.servicer import ARRIVING, LARGEST, SERVICE, FeedServicer, door_of
from winnow.stateless.feed.storing import Storing
from winnow.stateless.feed.unchanged import UnchangedPuts
from winnow.stateless.feed.writers import Writers
from winnow.stateless.http.passages import feed_calls
from winnow.v1 import feed_pb2_grpc

_STREAMS = 128
"""Calls that a connection may have in hand."""


async def serve_feed(front: Front, source: NodeSource, cluster: OpenCluster) -> Part:
    """A server that feeds the cluster that the front answers from."""
    settings, metrics = front.settings, FeedMetrics(front.registry)
    encoder = await asyncio.to_thread(
        FeedEncoder, front.bundle, settings.runtime, settings.feed_threads, settings.feed_nice
    )
    front.stack.callback(encoder.close)
    writers = Writers(lambda: cluster.builder.view, cluster.nodes.present, source.open_writer)
    front.stack.push_async_callback(writers.close)
    admission = FeedAdmission(settings.feed_in_hand, metrics)
    front.work.passages = admission
    storing = Storing(writers, metrics, record_write=cluster.snapshot.record_write)
    aside = FairThreads(1, "fed")
    front.stack.callback(aside.close)
    core = FeedCore(
        encoder=encoder,
        unchanged=UnchangedPuts(writers, cluster.snapshot.record_write),
        storing=storing,
        admission=admission,
        metrics=metrics,
        aside=aside,
    )
    # not the door of questions, nor their places: none of them waits behind a passage
    server = Server(
        services=[SERVICE],
        interceptor=front.boundary,
        max_message_bytes=LARGEST,
        max_pending_bytes=ARRIVING,
        reject=front.access.guarded(door_of(admission)),
        max_streams=_STREAMS,
        security=front.access.security,
    )
    servicer = FeedServicer(core, settings.feed_deadline)
    feed_pb2_grpc.add_FeedServiceServicer_to_server(servicer, server.grpc)
    if settings.http_feed:
        front.calls.extend(feed_calls(core, settings.feed_deadline, admission.refusal))
    return Part(encoder.warm_up, servers=[Listener(server, settings.feed_listen)])
