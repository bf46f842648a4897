"""Serves `/v1/passages`: converts requests, calls the feed core, converts results.

Several passages are put by one POST, because a PUT would mean replacing all passages. They are also
deleted by POST, at `/v1/passages:delete`: proxies may drop the body of a DELETE, and ids may have
characters that a path cannot contain.
"""

from functools import partial

from winnow.convert import feed as convert
from winnow.stateless.early_rejection import Refusal
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.filter_deletion import FilterDeletion
from winnow.stateless.feed.servicer import MAX_MESSAGE_BYTES
from winnow.stateless.http.call import MAX_ESCAPED_BYTES, HttpOperation, NewDeadline
from winnow.stateless.http.headers import before_deadline
from winnow.v1 import feed_pb2


def feed_operations(
    core: FeedCore, deletion: FilterDeletion, default_deadline: float, refusal: Refusal
) -> list[HttpOperation]:
    """Returns the operations of the feed core.

    Args:
        core: stores and deletes passages.
        deletion: deletes passages by filter.
        default_deadline: deadline in seconds of a call whose caller sets none.
        refusal: returns the error that refuses a client's request before its body is read.

    """
    return [
        HttpOperation(
            name="Put",
            path="/v1/passages",
            about="Stores passages; replies when they are durable. A passage with a known id "
            "replaces the stored one.",
            scope="feed",
            run=partial(_put, core),
            request=feed_pb2.PutRequest,
            response=feed_pb2.PutResponse,
            default_deadline=default_deadline,
            max_body_bytes=MAX_MESSAGE_BYTES * MAX_ESCAPED_BYTES,
            refusal=refusal,
        ),
        HttpOperation(
            name="Delete",
            path="/v1/passages:delete",
            about="Deletes passages by id; replies when the deletions are durable. An unknown id "
            "is not an error.",
            scope="feed",
            run=partial(_delete, core),
            request=feed_pb2.DeleteRequest,
            response=feed_pb2.DeleteResponse,
            default_deadline=default_deadline,
            max_body_bytes=MAX_MESSAGE_BYTES * MAX_ESCAPED_BYTES,
            refusal=refusal,
        ),
        HttpOperation(
            name="DeleteWhere",
            path="/v1/passages:deleteWhere",
            about="Deletes the passages that match a filter, or those of a document. Send it again "
            "until complete is true.",
            scope="feed",
            run=partial(_delete_where, deletion),
            request=feed_pb2.DeleteWhereRequest,
            response=feed_pb2.DeleteWhereResponse,
            default_deadline=default_deadline,
            max_body_bytes=MAX_MESSAGE_BYTES * MAX_ESCAPED_BYTES,
            refusal=refusal,
        ),
    ]


async def _put(
    core: FeedCore, message: feed_pb2.PutRequest, new_deadline: NewDeadline, client: str
) -> feed_pb2.PutResponse:
    deadline = new_deadline()
    passages = convert.passages_of_message(message)
    results = await before_deadline(core.put(passages, deadline, client), deadline)
    return feed_pb2.PutResponse(results=convert.results_to_messages(results))


async def _delete(
    core: FeedCore, message: feed_pb2.DeleteRequest, new_deadline: NewDeadline, client: str
) -> feed_pb2.DeleteResponse:
    deadline = new_deadline()
    deletions = convert.deletions_of_message(message)
    results = await before_deadline(core.delete(deletions, deadline, client), deadline)
    return feed_pb2.DeleteResponse(results=convert.results_to_messages(results))


async def _delete_where(
    deletion: FilterDeletion,
    message: feed_pb2.DeleteWhereRequest,
    new_deadline: NewDeadline,
    client: str,
) -> feed_pb2.DeleteWhereResponse:
    deadline = new_deadline()
    request = convert.filtered_deletion_of_message(message)
    deleted = await before_deadline(deletion.delete(request, deadline, client), deadline)
    return convert.deleted_to_message(deleted)
