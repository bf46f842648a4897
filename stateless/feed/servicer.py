"""`winnow.v1.FeedService`: convert, call, convert."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, TypeVar

from winnow.convert import feed as convert
from winnow.deadline import Deadline
from winnow.errors import WinnowError
from winnow.inference.fair_threads import FairThreads
from winnow.rpc import client_key
from winnow.rpc.deadline import of_context
from winnow.rpc.message_interceptor import Metadata, Reject
from winnow.stateless.feed.admission import FeedAdmission
from winnow.stateless.feed.core import FeedCore
from winnow.v1 import feed_pb2, feed_pb2_grpc

SERVICE = "winnow.v1.FeedService"
LARGEST = 1 << 20
"""Bytes of a message: 100 passages of 1 500 words, or fewer of 10 000 characters."""
ARRIVING = 64 * LARGEST
"""Bytes of all messages on their way."""
Message = TypeVar("Message")
Value = TypeVar("Value")


class FeedServicer(feed_pb2_grpc.FeedServiceServicer):
    """The feed core behind gRPC."""

    def __init__(self, core: FeedCore, default_deadline: float, aside: FairThreads) -> None:
        """`default_deadline`: seconds for a call whose caller sets no deadline, and at most for
        each message of a stream; `aside`: converts what was sent.
        """
        self._core, self._default, self._aside = core, default_deadline, aside

    async def Put(  # noqa: N802
        self, request: feed_pb2.PutRequest, context: Any
    ) -> feed_pb2.PutResponse:
        deadline, client = self._deadline(context), _client(context)
        passages = await self._aside.run(client, partial(convert.passages_of_message, request))
        results = await self._core.put(passages, deadline, client)
        return feed_pb2.PutResponse(results=convert.results_to_messages(results))

    async def PutStream(  # noqa: N802
        self, requests: AsyncIterator[feed_pb2.PutRequest], context: Any
    ) -> feed_pb2.FeedSummary:
        client, until = _client(context), partial(self._at_most, context)
        messages = self._each(convert.passages_of_message, requests, client)
        return convert.summary_to_message(await self._core.put_stream(messages, until, client))

    async def Delete(  # noqa: N802
        self, request: feed_pb2.DeleteRequest, context: Any
    ) -> feed_pb2.DeleteResponse:
        deadline, client = self._deadline(context), _client(context)
        deletions = await self._aside.run(client, partial(convert.deletions_of_message, request))
        results = await self._core.delete(deletions, deadline, client)
        return feed_pb2.DeleteResponse(results=convert.results_to_messages(results))

    async def DeleteStream(  # noqa: N802
        self, requests: AsyncIterator[feed_pb2.DeleteRequest], context: Any
    ) -> feed_pb2.FeedSummary:
        client, until = _client(context), partial(self._at_most, context)
        messages = self._each(convert.deletions_of_message, requests, client)
        return convert.summary_to_message(await self._core.delete_stream(messages, until, client))

    def _deadline(self, context: Any) -> Deadline:
        return of_context(context, self._default)

    def _at_most(self, context: Any) -> Deadline:
        """Of a message of a stream that has just come: streams may go on for hours."""
        left = of_context(context, self._default).left()
        return Deadline.after(min(left, self._default))

    async def _each(
        self,
        convert_one: Callable[[Message], Value],
        messages: AsyncIterator[Message],
        client: str,
    ) -> AsyncIterator[Value]:
        async for message in messages:
            yield await self._aside.run(client, partial(convert_one, message))


def door_of(admission: FeedAdmission) -> Reject:
    """Refuses requests before their messages are read. Streams wait for room instead."""

    def door(method: str, metadata: Metadata) -> WinnowError | None:
        if not method.startswith(f"/{SERVICE}/") or method.endswith("Stream"):
            return None
        return admission.refusal(client_key.of_metadata(metadata))

    return door


def _client(context: Any) -> str:
    return client_key.of_metadata(context.invocation_metadata())
