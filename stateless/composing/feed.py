"""Composes the feed service of a front, on its own port."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial

import structlog

from winnow.bundle import Bundle
from winnow.documents.conversion.converter import DocumentConverter
from winnow.errors import WinnowError
from winnow.inference.fair_threads import FairThreads
from winnow.rpc.server import Server
from winnow.rpc.service import Listener
from winnow.stateless.cluster.absence import not_loaded_error
from winnow.stateless.composing.cluster import OpenCluster
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.nodes import NodeSource
from winnow.stateless.composing.shared_values import SharedValues
from winnow.stateless.feed.admission import FeedAdmission
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.document_conversion import UPLOAD_LIMITS, DocumentConversion
from winnow.stateless.feed.encoding import FeedEncoder
from winnow.stateless.feed.fed_index import ChooseFed, FedIndex
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
from winnow.stateless.indexes.front_index import FrontIndex
from winnow.stateless.passages.servicer import SERVICE as PASSAGE_SERVICE
from winnow.stateless.passages.servicer import PassageServicer
from winnow.stateless.tenants.storage import TenantStorage
from winnow.uncancelled import run_uncancelled
from winnow.v1 import feed_pb2_grpc, passage_pb2_grpc

_log = structlog.get_logger("stateless.feed")
_MAX_STREAMS = 128
"""Maximum number of concurrent calls on a connection."""


class FeedParts:
    """What the feeding of all indexes shares: admission, threads and encoders."""

    def __init__(self, front: Front, metrics: FeedMetrics) -> None:
        """Opens no encoder yet. The front closes the other parts."""
        self._front, self.metrics = front, metrics
        self.admission = FeedAdmission(front.settings.feed_in_hand, self.metrics)
        self.prepare_thread = FairThreads(1, "fed")
        front.stack.callback(self.prepare_thread.close)
        front.work.passages = self.admission
        self._encoders = SharedValues[tuple[str, str], FeedEncoder]()
        """The encoders by the fingerprints of vectors and of token vectors."""

    async def encoder(self, bundle: Bundle, index: AsyncExitStack) -> FeedEncoder:
        """Returns the encoder of passages of a bundle. Bundles that encode alike share it.

        `index` is closed with the index that uses it.
        """
        manifest = bundle.manifest
        key = manifest.encoding_fingerprint, manifest.token_vectors_fingerprint
        return await self._encoders.use(key, partial(self._open_encoder, bundle), index)

    async def warm_up(self) -> None:
        """Encodes passages of several lengths with each encoder."""
        for encoder in self._encoders.all:
            await encoder.warm_up()

    async def _open_encoder(self, bundle: Bundle, stack: AsyncExitStack) -> FeedEncoder:
        settings = self._front.settings

        async def open_and_keep() -> FeedEncoder:
            encoder = await asyncio.to_thread(
                FeedEncoder, bundle, settings.runtime, settings.feed_threads, settings.feed_nice
            )
            stack.callback(encoder.close)
            return encoder

        # a caller that is cancelled meanwhile gets no encoder, but its stack closes it
        return await run_uncancelled(open_and_keep())


def open_writers(front: Front, source: NodeSource, cluster: OpenCluster) -> Writers:
    """Opens what opens the writers of shards. The front closes them."""
    nodes, builder = cluster.nodes, cluster.builder
    writers = Writers(
        lambda: builder.view,
        nodes.present_replicas,
        source.open_writer,
        lambda shard: not_loaded_error(shard, nodes.nodes.values(), builder.view),
    )
    front.stack.push_async_callback(writers.close)
    return writers


async def open_feed(
    front: Front, source: NodeSource, cluster: OpenCluster, index: FrontIndex, shared: FeedParts
) -> FedIndex:
    """Opens the part that writes to the index that the front searches. The front closes it.

    `index` has the parts that search it.
    """
    encoder = await shared.encoder(front.bundle, front.stack)
    writers = open_writers(front, source, cluster)
    record_write = cluster.snapshot.record_write
    storage = TenantStorage(front.access.quotas, lambda: writers.partition)
    core = FeedCore(
        encoder=encoder,
        unchanged=UnchangedPuts(writers, record_write),
        router=WriteRouter(writers, shared.metrics, record_write=record_write, storage=storage),
        admission=shared.admission,
        metrics=shared.metrics,
        prepare_thread=shared.prepare_thread,
        token_vectors=lambda: (
            cluster.builder.cluster.token_vectors if cluster.builder.cluster else ""
        ),
    )
    by_filter = FilterDeletion(index.passages, core)
    return FedIndex(core, by_filter, tenancy=index.tenancy, storage=storage)


def serve_feed(
    front: Front, shared: FeedParts, choose: ChooseFed, passages: PassageServicer
) -> FrontPart:
    """Serves the feed service of all indexes on a separate port.

    `choose` returns the index of a name. The port also serves `passages`: a client that syncs
    documents lists them first.
    """
    settings, admission = front.settings, shared.admission
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
    servicer = FeedServicer(choose, settings.feed_deadline)
    feed_pb2_grpc.add_FeedServiceServicer_to_server(servicer, server.grpc)
    passage_pb2_grpc.add_PassageServiceServicer_to_server(passages, server.grpc)
    if settings.http_feed:
        limits = OperationLimits(settings.feed_deadline, admission.refusal)
        operations = feed_operations(choose, limits)
        front.http_operations.extend([*operations, *_document_operations(front, limits)])
    return FrontPart(shared.warm_up, servers=[Listener(server, settings.feed_listen)])


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
