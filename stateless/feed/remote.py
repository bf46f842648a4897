"""A shard behind gRPC, as a `ShardWriter`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc

from winnow.convert import shard_feed as convert
from winnow.deadline import Deadline
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, Written
from winnow.errors import NotWritableError
from winnow.passages.canonical import PassageDigest
from winnow.rpc import call_metadata
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.server import KIB
from winnow.rpc.status import error_of_node
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc

LARGEST = 240 * KIB
"""Bytes of the writes of a message: less than a node takes, for the message's other fields. The
largest valid write is smaller.
"""
_AT_ONCE = 50
"""Short writes that are converted on the event loop without a pause: tenths of a millisecond."""
_AROUND = 8
"""Bytes of the tag and the length of a write in its message."""
Reply = TypeVar("Reply")


class RemoteShardWriter:
    """Writes to a content node; deadlines and request ids travel along."""

    def __init__(
        self,
        *,
        channel: grpc.aio.Channel,
        address: str,
        index_id: str,
        shard: int,
        fingerprint: str,
    ) -> None:
        """Writes are meant for `shard` of the index. `fingerprint` names the encoder of their
        vectors.
        """
        self._stub = shard_feed_pb2_grpc.ShardFeedServiceStub(channel)
        self.address = address
        self._meant: dict[str, Any] = {
            "index_id": index_id,
            "shard": shard,
            "encoding_fingerprint": fingerprint,
        }
        self.calls = 0
        """The number of calls in hand."""

    async def write(self, writes: Sequence[Write], deadline: Deadline) -> list[Written]:
        """Stores writes in their order, in several messages if one does not hold them.

        If a later message fails, the earlier ones are stored nevertheless.
        """
        found: list[Written] = []
        with self._in_hand():
            async for batch in _batches(writes):
                request = shard_feed_pb2.WriteRequest(**self._meant, writes=batch)
                reply = await self._call(
                    self._stub.Write(
                        request,
                        timeout=timeout(deadline),
                        metadata=call_metadata.build(),
                    )
                )
                found += convert.written_of_message(reply, len(batch))
        return found

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that change nothing: none on a node of an older version."""
        passages = convert.digests_to_messages(puts)
        request = shard_feed_pb2.FindUnchangedRequest(**self._meant, passages=passages)
        with self._in_hand():
            try:
                reply = await self._call(
                    self._stub.FindUnchanged(
                        request,
                        timeout=timeout(deadline),
                        metadata=call_metadata.build(),
                    )
                )
            except NotWritableError:
                return [None] * len(puts)
        return convert.unchanged_of_message(reply, len(puts))

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """The passages of the whole index that had each word when it was built."""
        return convert.built_of_message(await self._counts(deadline, changes_only=False))

    async def changes(self, deadline: Deadline) -> WordChanges:
        """The changes of these counts by writes to this shard."""
        return convert.changes_of_message(await self._counts(deadline, changes_only=True))

    async def _counts(
        self, deadline: Deadline, changes_only: bool
    ) -> shard_feed_pb2.GetWordCountsResponse:
        request = shard_feed_pb2.GetWordCountsRequest(changes_only=changes_only)
        with self._in_hand():
            return await self._call(self._stub.GetWordCounts(request, timeout=timeout(deadline)))

    @contextmanager
    def _in_hand(self) -> Iterator[None]:
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1

    async def _call(self, call: Awaitable[Reply]) -> Reply:
        try:
            return await reply_of(call)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                refused = NotWritableError(
                    f"{self.address} takes no writes: start the node with --feed"
                )
                public = "its node takes no writes: start the node with --feed"
                raise refused.with_public(public) from error
            raise error_of_node(error, self.address) from error


async def _batches(writes: Sequence[Write]) -> AsyncIterator[list[shard_feed_pb2.EncodedWrite]]:
    """The writes as they travel, in messages of bounded size."""
    batch: list[shard_feed_pb2.EncodedWrite] = []
    size = 0
    for place, write in enumerate(writes, start=1):
        # one at a time: a few long passages fill a message, and others run while it is sent
        (message,) = convert.writes_to_messages([write])
        more = message.ByteSize() + _AROUND
        if batch and size + more > LARGEST:
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += more
        if place % _AT_ONCE == 0:
            await asyncio.sleep(0)
    if batch:
        yield batch
