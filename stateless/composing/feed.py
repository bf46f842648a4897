"""Composes the feed service of a front, on its own port."""

import asyncio
from dataclasses import dataclass

import structlog

from winnow.documents.conversion.converter import DocumentConverter
from winnow.errors import WinnowError
from winnow.inference.fair_threads import FairThreads
from winnow.rpc.server import Server
from winnow.rpc.service import Listener
from winnow.stateless.composing.cluster import OpenCluster
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.nodes import NodeSource
from winnow.stateless.feed.admission import FeedAdmission
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.document_conversion import UPLOAD_LIMITS, DocumentConversion
from winnow.stateless.feed.encoding import FeedEncoder
from winnow.stateless.feed.filter_deletion import FilterDeletion
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.servicer import (
    MAX_MESSAGE_BYTES,
    MAX_PENDING_BYTES,
    SERVICE,
    FeedServicer,
    reject_without_room,
)
from winnow.stateless.feed.storing import WriteRouter
from winnow.stateless.feed.unchanged import UnchangedPuts
from winnow.stateless.feed.writers import Writers
from winnow.stateless.http.call import HttpOperation, OperationLimits
from winnow.stateless.http.documents import document_operations
from winnow.stateless.http.passages import feed_operations
from winnow.stateless.passages.core import PassageCore
from winnow.stateless.passages.servicer import SERVICE as PASSAGE_SERVICE
from winnow.stateless.passages.servicer import PassageServicer
from winnow.uncancelled import run_uncancelled
from winnow.v1 import feed_pb2_grpc, passage_pb2_grpc

_log = structlog.get_logger("stateless.feed")
_MAX_STREAMS = 128
"""Maximum number of concurrent calls on a connection."""


@dataclass(frozen=True, slots=True)
class OpenFeed:
    """The core, the admission, the encoder and the deletion by filter of the feed service."""

    core: FeedCore
    admission: FeedAdmission
    encoder: FeedEncoder
    deletion: FilterDeletion


async def open_feed(
    front: Front,
    source: NodeSource,
    cluster: OpenCluster,
    metrics: FeedMetrics,
    passages: PassageCore,
) -> OpenFeed:
    """Opens the feed service of the cluster that the front searches. The front closes it.

    `passages` lists the passages to delete by filter.
    """
    settings = front.settings
    encoder = await run_uncancelled(_open_encoder(front))
    writers = Writers(
        lambda: cluster.builder.view, cluster.nodes.present_replicas, source.open_writer
    )
    front.stack.push_async_callback(writers.close)
    admission = FeedAdmission(settings.feed_in_hand, metrics)
    front.work.passages = admission
    record_write = cluster.snapshot.record_write
    prepare_thread = FairThreads(1, "fed")
    front.stack.callback(prepare_thread.close)
    core = FeedCore(
        encoder=encoder,
        unchanged=UnchangedPuts(writers, record_write),
        router=WriteRouter(writers, metrics, record_write=record_write),
        admission=admission,
        metrics=metrics,
        prepare_thread=prepare_thread,
    )
    return OpenFeed(core, admission, encoder, FilterDeletion(passages, core))


async def _open_encoder(front: Front) -> FeedEncoder:
    settings = front.settings
    encoder = await asyncio.to_thread(
        FeedEncoder, front.bundle, settings.runtime, settings.feed_threads, settings.feed_nice
    )
    front.stack.callback(encoder.close)
    return encoder


def serve_feed(front: Front, feed: OpenFeed, passages: PassageServicer) -> FrontPart:
    """Serves the feed service on a separate port.

    The port also serves `passages`: a client that syncs documents lists them first.
    """
    settings, admission = front.settings, feed.admission
    # the limits are separate from those of questions, so that no question waits for a passage
    server = Server(
        services=[SERVICE, PASSAGE_SERVICE],
        interceptor=front.interceptor,
        max_message_bytes=MAX_MESSAGE_BYTES,
        max_pending_bytes=MAX_PENDING_BYTES,
        reject=front.access.with_key_check(reject_without_room(admission)),
        max_streams=_MAX_STREAMS,
        security=front.access.security,
    )
    servicer = FeedServicer(feed.core, settings.feed_deadline, feed.deletion)
    feed_pb2_grpc.add_FeedServiceServicer_to_server(servicer, server.grpc)
    passage_pb2_grpc.add_PassageServiceServicer_to_server(passages, server.grpc)
    if settings.http_feed:
        limits = OperationLimits(settings.feed_deadline, admission.refusal)
        operations = feed_operations(feed.core, feed.deletion, limits)
        front.http_operations.extend([*operations, *_document_operations(front, limits)])
    return FrontPart(feed.encoder.warm_up, servers=[Listener(server, settings.feed_listen)])


def _document_operations(front: Front, limits: OperationLimits) -> list[HttpOperation]:
    """Returns the operation that converts documents; none without the extra `documents`.

    The worker process starts with the first document. The front closes it.
    """
    try:
        converter = DocumentConverter(workers=1, limits=UPLOAD_LIMITS)
    except WinnowError as error:
        _log.info("documents are not converted", reason=str(error))
        return []
    conversion = DocumentConversion(converter)
    front.stack.callback(conversion.close)
    front.stack.callback(converter.close)  # first, because it ends a running conversion
    return document_operations(conversion, limits)
