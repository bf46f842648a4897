"""Serves `winnow.v1.FeedService`: converts requests, calls the feed core, converts results."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from winnow.convert import feed as convert
from winnow.deadline import Deadline
from winnow.errors import NotServedError, WinnowError
from winnow.rpc import client_key
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import deadline_of
from winnow.rpc.message_interceptor import Metadata, Reject
from winnow.stateless.feed.admission import FeedAdmission
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.filter_deletion import FilterDeletion
from winnow.v1 import feed_pb2, feed_pb2_grpc

SERVICE = "winnow.v1.FeedService"
MAX_MESSAGE_BYTES = 1 << 20
"""Maximum size of a message, in bytes: 100 passages of 1500 words, or fewer longer passages."""
MAX_PENDING_BYTES = 64 * MAX_MESSAGE_BYTES
"""Maximum size of all messages that are being received, in bytes."""


class FeedServicer(feed_pb2_grpc.FeedServiceServicer):
    """Serves the feed core over gRPC."""

    def __init__(
        self, core: FeedCore, default_deadline: float, deletion: FilterDeletion | None = None
    ) -> None:
        """`default_deadline`: deadline in seconds of a call whose caller sets none, and maximum
        deadline of each message of a stream. `deletion` deletes by filter; None refuses that.
        """
        self._core, self._default_deadline, self._deletion = core, default_deadline, deletion

    async def Put(  # noqa: N802
        self, request: feed_pb2.PutRequest, context: Any
    ) -> feed_pb2.PutResponse:
        passages = convert.passages_of_message(request)
        results = await self._core.put(passages, self._deadline(context), client_of(context))
        return feed_pb2.PutResponse(results=convert.results_to_messages(results))

    async def PutStream(  # noqa: N802
        self, requests: AsyncIterator[feed_pb2.PutRequest], context: Any
    ) -> feed_pb2.FeedSummary:
        messages = (convert.passages_of_message(each) async for each in requests)
        new_deadline = partial(self._message_deadline, context)
        summary = await self._core.put_stream(messages, new_deadline, client_of(context))
        return convert.summary_to_message(summary)

    async def Delete(  # noqa: N802
        self, request: feed_pb2.DeleteRequest, context: Any
    ) -> feed_pb2.DeleteResponse:
        deletions = convert.deletions_of_message(request)
        results = await self._core.delete(deletions, self._deadline(context), client_of(context))
        return feed_pb2.DeleteResponse(results=convert.results_to_messages(results))

    async def DeleteWhere(  # noqa: N802
        self, request: feed_pb2.DeleteWhereRequest, context: Any
    ) -> feed_pb2.DeleteWhereResponse:
        if self._deletion is None:
            raise NotServedError("this front does not delete by filter")
        wanted = convert.filtered_deletion_of_message(request)
        deleted = await self._deletion.delete(wanted, self._deadline(context), client_of(context))
        return convert.deleted_to_message(deleted)

    async def DeleteStream(  # noqa: N802
        self, requests: AsyncIterator[feed_pb2.DeleteRequest], context: Any
    ) -> feed_pb2.FeedSummary:
        messages = (convert.deletions_of_message(each) async for each in requests)
        new_deadline = partial(self._message_deadline, context)
        summary = await self._core.delete_stream(messages, new_deadline, client_of(context))
        return convert.summary_to_message(summary)

    def _deadline(self, context: Any) -> Deadline:
        return deadline_of(context, self._default_deadline)

    def _message_deadline(self, context: Any) -> Deadline:
        """Returns the deadline of a message that has just arrived in a long stream."""
        remaining = deadline_of(context, self._default_deadline).left()
        return Deadline.after(min(remaining, self._default_deadline))


def reject_without_room(admission: FeedAdmission) -> Reject:
    """Returns a rule that refuses calls before their messages are read; streams wait instead."""

    def reject(method: str, metadata: Metadata) -> WinnowError | None:
        if not method.startswith(f"/{SERVICE}/") or method.endswith("Stream"):
            return None
        return admission.refusal(client_key.of_metadata(metadata))

    return reject
