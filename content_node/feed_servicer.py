"""`winnow.v1.ShardFeedService`: converts messages, calls the writer, and converts its results.

Refuses writes for another shard, and all calls while no shard is loaded.
"""

from typing import Any

from winnow.convert import shard_feed as convert
from winnow.deadline import Deadline
from winnow.domain.shard import ShardInfo
from winnow.errors import IdentityError, NotLoadedError, UnavailableError
from winnow.quoting import shortened
from winnow.rpc.deadline import deadline_of
from winnow.rpc.server import KIB
from winnow.shard_writer import ShardWriter
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc

FEED_SERVICE = "winnow.v1.ShardFeedService"
MAX_WRITE_BYTES = 1024 * KIB
"""About two hundred passages fit in."""


class ShardFeedServicer(shard_feed_pb2_grpc.ShardFeedServiceServicer):
    """Serves any `ShardWriter` once it is loaded."""

    def __init__(self, default_deadline: float) -> None:
        self._default_deadline = default_deadline
        self._served: tuple[ShardWriter, ShardInfo, str] | None = None
        self._fault = ""

    def serve(self, writer: ShardWriter, info: ShardInfo, encoding_fingerprint: str) -> None:
        """Sends calls to `writer`; `info` and `encoding_fingerprint` are those of its shard."""
        self._served = writer, info, encoding_fingerprint

    def fail(self, fault: str) -> None:
        """Refuses every call with `fault`, the reason why there is no shard."""
        self._fault = fault

    async def Write(  # noqa: N802
        self, request: shard_feed_pb2.WriteRequest, context: Any
    ) -> shard_feed_pb2.WriteResponse:
        deadline = self._deadline(context)
        writer = self._writer_for(request)
        writes = convert.writes_of_messages(request.writes)
        return convert.written_to_message(await writer.write(writes, deadline))

    async def FindUnchanged(  # noqa: N802
        self, request: shard_feed_pb2.FindUnchangedRequest, context: Any
    ) -> shard_feed_pb2.FindUnchangedResponse:
        deadline = self._deadline(context)
        writer = self._writer_for(request)
        puts = convert.digests_of_messages(request.passages)
        return convert.unchanged_to_message(await writer.find_unchanged(puts, deadline))

    async def GetWordCounts(  # noqa: N802
        self, request: shard_feed_pb2.GetWordCountsRequest, context: Any
    ) -> shard_feed_pb2.GetWordCountsResponse:
        deadline = self._deadline(context)
        writer, _, _ = self._ready()
        built = None if request.changes_only else await writer.built_counts(deadline)
        return convert.counts_to_message(await writer.changes(deadline), built)

    def _writer_for(
        self, request: shard_feed_pb2.WriteRequest | shard_feed_pb2.FindUnchangedRequest
    ) -> ShardWriter:
        """Returns the writer; raises IdentityError if the request is meant for another shard."""
        writer, info, encoding = self._ready()
        if (request.index_id, request.shard) != (info.index_id, info.shard):
            raise IdentityError(
                f"the request is for shard {request.shard} of index "
                f"{shortened(request.index_id or '(none)')}, this is shard {info.shard} of index "
                f"{info.index_id}: correct the front's list of nodes"
            )
        if request.encoding_fingerprint != encoding:
            raise IdentityError(
                "the request's vectors have the encoding fingerprint "
                f"{shortened(request.encoding_fingerprint or '(none)')}, those of this shard have "
                f"{encoding}: start both with the same bundle"
            )
        return writer

    def _ready(self) -> tuple[ShardWriter, ShardInfo, str]:
        if self._fault:
            raise NotLoadedError(self._fault)
        if self._served is None:
            raise UnavailableError("the shard is still loading")
        return self._served

    def _deadline(self, context: Any) -> Deadline:
        deadline = deadline_of(context, self._default_deadline)
        deadline.check("the call began")
        return deadline
