"""Writes to a shard over gRPC, as a `ShardWriter`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc

from winnow.convert import shard_feed as convert
from winnow.deadline import Deadline
from winnow.domain.quota import StorageQuota
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.errors import NotWritableError
from winnow.passages.canonical import PassageDigest
from winnow.rpc import call_metadata
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.server import KIB
from winnow.rpc.status import error_of_node
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc

MAX_BATCH_BYTES = 240 * KIB
"""Maximum size of all writes in a message, in bytes.

It leaves room for the other fields of the largest message that a node accepts, and is more than the
largest valid write.
"""
_WRITES_PER_YIELD = 50
"""Number of writes that are converted before other tasks run. They take tenths of a millisecond."""
_FIELD_OVERHEAD_BYTES = 8
"""Bytes of the tag and the length of a write in its message."""
Reply = TypeVar("Reply")


class RemoteShardWriter:
    """Writes to a shard of a content node. Each call sends the deadline and the request id."""

    def __init__(
        self,
        *,
        channel: grpc.aio.Channel,
        address: str,
        index_id: str,
        shard: int,
        fingerprint: str,
        is_named: bool = False,
        expiry: Callable[[Deadline], int | None] = lambda _: None,
        copy_run: int = 0,
    ) -> None:
        """`fingerprint` identifies the encoder of the vectors.

        `is_named`: whether the index is not the default index of the node. `expiry` returns a time
        of the node's clock that is not after a deadline, in milliseconds; None if it is unknown.
        `copy_run`: the run of copying that the writes belong to; 0 for writes of callers.

        The node refuses writes whose index, shard or fingerprint differs from its own.
        """
        self._stub = shard_feed_pb2_grpc.ShardFeedServiceStub(channel)
        self.address, self._expiry = address, expiry
        self._index_id = index_id if is_named else ""
        self._target_fields: dict[str, Any] = {
            "index_id": index_id,
            "shard": shard,
            "encoding_fingerprint": fingerprint,
            "copy_run": copy_run,
        }
        self.calls = 0
        """Number of running calls."""

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        """Stores writes in their order, in several messages if they do not fit into one.

        If a message fails, the writes of earlier messages stay stored.
        """
        written: list[Written] = []
        with self._count_call():
            async for batch, quota in _batches(writes):
                request = shard_feed_pb2.WriteRequest(
                    **self._target_fields,
                    writes=batch,
                    expires_at_ms=self._expiry(deadline),
                    call=f"{attempt.call}.{len(written)}" if attempt else "",
                    attempt=attempt.number if attempt else 0,
                    quota=None if quota is None else convert.quota_to_message(quota),
                )
                reply = await self._call(self._stub.Write, request, deadline)
                written += convert.written_of_message(reply, len(batch))
        return written

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing. An older node, which lacks this call, finds
        none.
        """
        passages = convert.digests_to_messages(puts)
        request = shard_feed_pb2.FindUnchangedRequest(**self._target_fields, passages=passages)
        with self._count_call():
            try:
                reply = await self._call(self._stub.FindUnchanged, request, deadline)
            except NotWritableError:
                return [None] * len(puts)
        return convert.unchanged_of_message(reply, len(puts))

    @contextmanager
    def _count_call(self) -> Iterator[None]:
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1

    async def _call(
        self, send: Callable[..., Awaitable[Reply]], request: object, deadline: Deadline
    ) -> Reply:
        """Sends a request and returns the reply. The error of a call is raised as a WinnowError."""
        metadata = call_metadata.build(index_id=self._index_id)
        try:
            return await reply_of(send(request, timeout=timeout(deadline), metadata=metadata))
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                refused = NotWritableError(
                    f"{self.address} takes no writes: start the node with --feed"
                )
                public = "its node takes no writes: start the node with --feed"
                raise refused.with_public(public) from error
            raise error_of_node(error, self.address) from error


async def _batches(
    writes: Sequence[Write],
) -> AsyncIterator[tuple[list[shard_feed_pb2.EncodedWrite], StorageQuota | None]]:
    """Converts writes to messages, in batches of at most `MAX_BATCH_BYTES`, each with its quota."""
    batch: list[shard_feed_pb2.EncodedWrite] = []
    size, quota = 0, None
    for count, write in enumerate(writes, start=1):
        quota = write.quota
        # convert one write at a time, so that a full batch is sent before the next conversion
        (message,) = convert.writes_to_messages([write])
        message_size = message.ByteSize() + _FIELD_OVERHEAD_BYTES
        if batch and size + message_size > MAX_BATCH_BYTES:
            yield batch, quota
            batch, size = [], 0
        batch.append(message)
        size += message_size
        if count % _WRITES_PER_YIELD == 0:
            await asyncio.sleep(0)
    if batch:
        yield batch, quota
