"""Serves `/v1/passages`: converts requests, calls the feed core, converts results.

Several passages are put by one POST, because a PUT would mean replacing all passages. They are also
deleted by POST, at `/v1/passages:delete`: proxies may drop the body of a DELETE, and ids may have
characters that a path cannot contain.
"""

from functools import partial

from winnow.convert import feed as convert
from winnow.deadline import Deadline
from winnow.stateless.feed.fed_index import ChooseFed, write_to_current
from winnow.stateless.feed.servicer import MAX_MESSAGE_BYTES
from winnow.stateless.http.call import MAX_ESCAPED_BYTES, HttpOperation, OperationLimits
from winnow.stateless.http.rpc_operation import rpc_operation
from winnow.v1 import feed_pb2

_SERVICE = feed_pb2.DESCRIPTOR.services_by_name["FeedService"]


def feed_operations(choose: ChooseFed, limits: OperationLimits) -> list[HttpOperation]:
    """Returns the operations that store and delete passages of the index that a request names."""
    operation = partial(
        rpc_operation,
        _SERVICE,
        scope="feed",
        limits=limits,
        max_body_bytes=MAX_MESSAGE_BYTES * MAX_ESCAPED_BYTES,
    )
    return [
        operation(
            "Put",
            partial(_put, choose),
            "/v1/passages",
            "Stores passages; replies when they are durable. A passage with a known id "
            "replaces the stored one.",
        ),
        operation(
            "Delete",
            partial(_delete, choose),
            "/v1/passages:delete",
            "Deletes passages by id; replies when the deletions are durable. An unknown id "
            "is not an error.",
        ),
        operation(
            "DeleteWhere",
            partial(_delete_where, choose),
            "/v1/passages:deleteWhere",
            "Deletes the passages that match a filter, or those of a document. Send it again "
            "until complete is true.",
        ),
        operation(
            "DeleteTenant",
            partial(_delete_tenant, choose),
            "/v1/tenants:delete",
            "Deletes all passages of a tenant. When it replies, no question finds them. A key "
            "needs the scope admin, too.",
        ),
    ]


async def _put(
    choose: ChooseFed, message: feed_pb2.PutRequest, deadline: Deadline, client: str
) -> feed_pb2.PutResponse:
    fed, results = await write_to_current(
        choose,
        message,
        deadline,
        lambda to: to.put(convert.passages_of_message(message, to.tenant), deadline, client),
    )
    return feed_pb2.PutResponse(
        results=convert.results_to_messages(results, fed.name),
        storage=convert.storage_to_message(fed.storage),
    )


async def _delete(
    choose: ChooseFed, message: feed_pb2.DeleteRequest, deadline: Deadline, client: str
) -> feed_pb2.DeleteResponse:
    fed, results = await write_to_current(
        choose,
        message,
        deadline,
        lambda to: to.delete(convert.deletions_of_message(message, to.tenant), deadline, client),
    )
    return feed_pb2.DeleteResponse(
        results=convert.results_to_messages(results, fed.name),
        storage=convert.storage_to_message(fed.storage),
    )


async def _delete_where(
    choose: ChooseFed, message: feed_pb2.DeleteWhereRequest, deadline: Deadline, client: str
) -> feed_pb2.DeleteWhereResponse:
    request = convert.filtered_deletion_of_message(message)
    fed, deleted = await write_to_current(
        choose, message, deadline, lambda to: to.delete_where(request, deadline, client)
    )
    return convert.deleted_to_message(deleted, fed.name)


async def _delete_tenant(
    choose: ChooseFed, message: feed_pb2.DeleteTenantRequest, deadline: Deadline, client: str
) -> feed_pb2.DeleteTenantResponse:
    fed, deleted = await write_to_current(
        choose, message, deadline, lambda to: to.delete_tenant(deadline, client)
    )
    return convert.deleted_tenant_to_message(deleted, fed.name)
