"""Serves `winnow.v1.ShardFeedService`: converts messages, calls a writer, converts its results.

It refuses writes for shards that this node does not have or has not loaded.
"""

from typing import Any

from winnow.convert import shard_feed as convert
from winnow.convert.by_name import optional
from winnow.deadline import Deadline
from winnow.domain.write import WriteAttempt
from winnow.errors import IdentityError, NotWritableError, UnavailableError
from winnow.quoting import shortened
from winnow.rpc import index_header
from winnow.rpc.deadline import unexpired_deadline_of
from winnow.rpc.server import KIB
from winnow.shard_service.attempts import LatestAttempts
from winnow.shard_service.node_time import deadline_at
from winnow.shard_writer import ShardWriter, WritableOfIndex, WritableShards
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc

FEED_SERVICE = "winnow.v1.ShardFeedService"
MAX_WRITE_BYTES = 1024 * KIB
"""Maximum size of a message, in bytes; about two hundred passages fit."""


class ShardFeedServicer(shard_feed_pb2_grpc.ShardFeedServiceServicer):
    """Serves the writers of the loaded shards of a node."""

    def __init__(
        self,
        shards: WritableShards,
        default_deadline: float,
        of_index: WritableOfIndex | None = None,
    ) -> None:
        """`of_index` returns the shards of an index by its id; None if `shards` are of one."""
        self._shards, self._default_deadline, self._of_index = shards, default_deadline, of_index
        self._attempts = LatestAttempts()

    async def Write(  # noqa: N802
        self, request: shard_feed_pb2.WriteRequest, context: Any
    ) -> shard_feed_pb2.WriteResponse:
        deadline = _until_expiry(self._deadline(context), request)
        writer = self._writer_for(request, context)
        attempt = WriteAttempt(request.call, request.attempt) if request.call else None
        if attempt is not None:
            self._attempts.admit(attempt, deadline)
        writes = convert.writes_of_messages(request.writes, convert.quota_of_message(request))
        return convert.written_to_message(await writer.write(writes, deadline, attempt))

    async def FindUnchanged(  # noqa: N802
        self, request: shard_feed_pb2.FindUnchangedRequest, context: Any
    ) -> shard_feed_pb2.FindUnchangedResponse:
        deadline = self._deadline(context)
        writer = self._writer_for(request, context)
        puts = convert.digests_of_messages(request.passages)
        return convert.unchanged_to_message(await writer.find_unchanged(puts, deadline))

    async def GetWordCounts(  # noqa: N802
        self, request: shard_feed_pb2.GetWordCountsRequest, context: Any
    ) -> shard_feed_pb2.GetWordCountsResponse:
        deadline = self._deadline(context)
        writer = self._shards_of(context).writing(optional(request, "shard")).writer
        built = None if request.changes_only else await writer.word_counts_at_build(deadline)
        return convert.counts_to_message(await writer.changes(deadline), built)

    def _writer_for(
        self,
        request: shard_feed_pb2.WriteRequest | shard_feed_pb2.FindUnchangedRequest,
        context: Any,
    ) -> ShardWriter:
        """Returns the writer of the request's shard.

        Raises IdentityError if the request is for another index or encoder.
        """
        shard = self._shards_of(context).writing(request.shard)
        if request.index_id != shard.info.index_id:
            raise IdentityError(
                f"the request is for shard {request.shard} of index "
                f"{shortened(request.index_id or '(none)')}, but this node serves index "
                f"{shard.info.index_id}: correct the front's list of nodes"
            )
        if request.encoding_fingerprint != shard.encoding_fingerprint:
            raise IdentityError(
                "the request's vectors have the encoding fingerprint "
                f"{shortened(request.encoding_fingerprint or '(none)')}, but the shard's vectors "
                f"have {shard.encoding_fingerprint}: start the front and the content node with "
                "the same bundle"
            )
        if not request.copy_run:
            return shard.writer
        if shard.copied_writer is None:
            raise NotWritableError(f"shard {request.shard} cannot be a copy of another index")
        return shard.copied_writer(request.copy_run)

    def _shards_of(self, context: Any) -> WritableShards:
        if self._of_index is None:
            return self._shards
        return self._of_index(index_header.of_metadata(context.invocation_metadata()))

    def _deadline(self, context: Any) -> Deadline:
        return unexpired_deadline_of(context, self._default_deadline)


def _until_expiry(deadline: Deadline, request: shard_feed_pb2.WriteRequest) -> Deadline:
    """Returns the deadline of a write: that of its call, or its expiry if that is earlier.

    Raises UnavailableError if the write has expired. Its front has given up, or has an outdated
    time of this node: then it tries again, with the time of its next poll.
    """
    if not request.HasField("expires_at_ms"):
        return deadline
    expiry = deadline_at(request.expires_at_ms)
    if expiry.expired():
        raise UnavailableError("the writes arrived after they had expired: try again")
    return min(deadline, expiry, key=lambda each: each.at)
