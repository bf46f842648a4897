"""Serves `winnow.v1.FeedService`: converts requests, calls the feed core, converts results."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from winnow.convert import feed as convert
from winnow.deadline import Deadline
from winnow.errors import WinnowError
from winnow.rpc import client_key
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import deadline_of
from winnow.rpc.message_interceptor import Metadata, Reject
from winnow.stateless.feed.admission import FeedAdmission
from winnow.stateless.feed.fed_index import (
    ChooseFed,
    NamingMessage,
    TenantFeed,
    with_one_index,
    write_to_current,
)
from winnow.v1 import feed_pb2, feed_pb2_grpc

SERVICE = "winnow.v1.FeedService"
MAX_MESSAGE_BYTES = 1 << 20
"""Maximum size of a message, in bytes: 100 passages of 1500 words, or fewer longer passages."""
MAX_PENDING_BYTES = 64 * MAX_MESSAGE_BYTES
"""Maximum size of all messages that are being received, in bytes."""


class FeedServicer(feed_pb2_grpc.FeedServiceServicer):
    """Serves the feed cores of all indexes over gRPC."""

    def __init__(self, choose: ChooseFed, default_deadline: float) -> None:
        """`choose` returns the index of a request.

        `default_deadline`: deadline in seconds of a call whose caller sets none, and maximum
        deadline of each message of a stream.
        """
        self._choose, self._default_deadline = choose, default_deadline

    async def Put(  # noqa: N802
        self, request: feed_pb2.PutRequest, context: Any
    ) -> feed_pb2.PutResponse:
        deadline, client = self._deadline(context), client_of(context)
        fed, results = await write_to_current(
            self._choose,
            request,
            deadline,
            lambda to: to.put(convert.passages_of_message(request, to.tenant), deadline, client),
        )
        return feed_pb2.PutResponse(
            results=convert.results_to_messages(results, fed.name),
            storage=convert.storage_to_message(fed.storage),
        )

    async def PutStream(  # noqa: N802
        self, requests: AsyncIterator[feed_pb2.PutRequest], context: Any
    ) -> feed_pb2.FeedSummary:
        fed, requests = await self._choose_for_stream(requests)
        messages = (convert.passages_of_message(each, fed.tenant) async for each in requests)
        new_deadline = partial(self._message_deadline, context)
        summary = await fed.put_stream(messages, new_deadline, client_of(context))
        return convert.summary_to_message(summary, fed.name, fed.storage)

    async def Delete(  # noqa: N802
        self, request: feed_pb2.DeleteRequest, context: Any
    ) -> feed_pb2.DeleteResponse:
        deadline, client = self._deadline(context), client_of(context)
        fed, results = await write_to_current(
            self._choose,
            request,
            deadline,
            lambda to: to.delete(
                convert.deletions_of_message(request, to.tenant), deadline, client
            ),
        )
        return feed_pb2.DeleteResponse(
            results=convert.results_to_messages(results, fed.name),
            storage=convert.storage_to_message(fed.storage),
        )

    async def DeleteWhere(  # noqa: N802
        self, request: feed_pb2.DeleteWhereRequest, context: Any
    ) -> feed_pb2.DeleteWhereResponse:
        wanted = convert.filtered_deletion_of_message(request)
        deadline, client = self._deadline(context), client_of(context)
        fed, deleted = await write_to_current(
            self._choose,
            request,
            deadline,
            lambda to: to.delete_where(wanted, deadline, client),
        )
        return convert.deleted_to_message(deleted, fed.name)

    async def DeleteStream(  # noqa: N802
        self, requests: AsyncIterator[feed_pb2.DeleteRequest], context: Any
    ) -> feed_pb2.FeedSummary:
        fed, requests = await self._choose_for_stream(requests)
        messages = (convert.deletions_of_message(each, fed.tenant) async for each in requests)
        new_deadline = partial(self._message_deadline, context)
        summary = await fed.delete_stream(messages, new_deadline, client_of(context))
        return convert.summary_to_message(summary, fed.name, fed.storage)

    async def DeleteTenant(  # noqa: N802
        self, request: feed_pb2.DeleteTenantRequest, context: Any
    ) -> feed_pb2.DeleteTenantResponse:
        deadline, client = self._deadline(context), client_of(context)
        fed, deleted = await write_to_current(
            self._choose, request, deadline, lambda to: to.delete_tenant(deadline, client)
        )
        return convert.deleted_tenant_to_message(deleted, fed.name)

    async def _choose_for_stream(
        self, requests: AsyncIterator[NamingMessage]
    ) -> tuple[TenantFeed, AsyncIterator[NamingMessage]]:
        """Returns what writes for the index and tenant of the first message, and all messages."""
        messages = aiter(requests)
        first = await anext(messages, None)
        if first is None:
            return self._choose("").of_tenant(""), messages
        fed = self._choose(first.index).of_tenant(first.tenant)
        return fed, with_one_index(first, messages, fed.tenant)

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
