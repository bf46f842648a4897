"""`winnow.v1.FeedService`: convert, call, convert."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from winnow.convert import feed as convert
from winnow.deadline import Deadline
from winnow.errors import WinnowError
from winnow.rpc import client_key
from winnow.rpc.deadline import deadline_of
from winnow.rpc.message_interceptor import Metadata, Reject
from winnow.stateless.feed.admission import FeedAdmission
from winnow.stateless.feed.core import FeedCore
from winnow.v1 import feed_pb2, feed_pb2_grpc

SERVICE = "winnow.v1.FeedService"
LARGEST = 1 << 20
"""Bytes of a message: 100 passages of 1 500 words, or fewer of 10 000 characters."""
ARRIVING = 64 * LARGEST
"""Bytes of all messages that are arriving."""


class FeedServicer(feed_pb2_grpc.FeedServiceServicer):
    """The feed core behind gRPC."""

    def __init__(self, core: FeedCore, default_deadline: float) -> None:
        """`default_deadline`: seconds for a call whose caller sets no deadline, and at most for
        each message of a stream.
        """
        self._core, self._default = core, default_deadline

    async def Put(  # noqa: N802
        self, request: feed_pb2.PutRequest, context: Any
    ) -> feed_pb2.PutResponse:
        passages = convert.passages_of_message(request)
        results = await self._core.put(passages, self._deadline(context), _client(context))
        return feed_pb2.PutResponse(results=convert.results_to_messages(results))

    async def PutStream(  # noqa: N802
        self, requests: AsyncIterator[feed_pb2.PutRequest], context: Any
    ) -> feed_pb2.FeedSummary:
        messages = (convert.passages_of_message(each) async for each in requests)
        new_deadline = partial(self._at_most, context)
        summary = await self._core.put_stream(messages, new_deadline, _client(context))
        return convert.summary_to_message(summary)

    async def Delete(  # noqa: N802
        self, request: feed_pb2.DeleteRequest, context: Any
    ) -> feed_pb2.DeleteResponse:
        deletions = convert.deletions_of_message(request)
        results = await self._core.delete(deletions, self._deadline(context), _client(context))
        return feed_pb2.DeleteResponse(results=convert.results_to_messages(results))

    async def DeleteStream(  # noqa: N802
        self, requests: AsyncIterator[feed_pb2.DeleteRequest], context: Any
    ) -> feed_pb2.FeedSummary:
        messages = (convert.deletions_of_message(each) async for each in requests)
        new_deadline = partial(self._at_most, context)
        summary = await self._core.delete_stream(messages, new_deadline, _client(context))
        return convert.summary_to_message(summary)

    def _deadline(self, context: Any) -> Deadline:
        return deadline_of(context, self._default)

    def _at_most(self, context: Any) -> Deadline:
        """The deadline of a message that has just arrived: streams may go on for hours."""
        left = deadline_of(context, self._default).left()
        return Deadline.after(min(left, self._default))


def door_of(admission: FeedAdmission) -> Reject:
    """Refuses requests before their messages are read. Streams wait for room instead."""

    def door(method: str, metadata: Metadata) -> WinnowError | None:
        if not method.startswith(f"/{SERVICE}/") or method.endswith("Stream"):
            return None
        return admission.refusal(client_key.of_metadata(metadata))

    return door


def _client(context: Any) -> str:
    return client_key.of_metadata(context.invocation_metadata())
