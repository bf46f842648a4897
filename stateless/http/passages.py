"""`/v1/passages`: convert, call, convert.

Passages are put by POST, several at once: PUT would mean that they become all that there is. They
are deleted by POST, too, at `/v1/passages:delete`: a DELETE has no body that proxies have to hand
on, and ids of passages may be anything.
"""

from functools import partial

from winnow.convert import feed as convert
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.servicer import LARGEST
from winnow.stateless.http.call import ESCAPED, HttpOperation, Refusal, Until
from winnow.stateless.http.patience import in_time
from winnow.v1 import feed_pb2


def feed_calls(
    core: FeedCore, aside: FairThreads, seconds: float, refusal: Refusal
) -> list[HttpOperation]:
    """The feed core behind HTTP.

    Args:
        core: stores and deletes.
        aside: converts what was sent.
        seconds: for a call whose caller sets no deadline.
        refusal: says whom it refuses before a body is read.

    """
    return [
        HttpOperation(
            "Put",
            "POST",
            "/v1/passages",
            "Stores passages; replies when they are durable. One whose id is known replaces the "
            "old one.",
            "feed",
            partial(_put, core, aside),
            feed_pb2.PutRequest,
            feed_pb2.PutResponse,
            seconds,
            LARGEST * ESCAPED,
            refusal,
        ),
        HttpOperation(
            "Delete",
            "POST",
            "/v1/passages:delete",
            "Deletes passages by id; replies when that is durable. An id that is not there is no "
            "error.",
            "feed",
            partial(_delete, core, aside),
            feed_pb2.DeleteRequest,
            feed_pb2.DeleteResponse,
            seconds,
            LARGEST * ESCAPED,
            refusal,
        ),
    ]


async def _put(
    core: FeedCore, aside: FairThreads, message: feed_pb2.PutRequest, until: Until, client: str
) -> feed_pb2.PutResponse:
    deadline = until()
    passages = await aside.run(client, partial(convert.passages_of_message, message))
    results = await in_time(core.put(passages, deadline, client), deadline)
    return feed_pb2.PutResponse(results=convert.results_to_messages(results))


async def _delete(
    core: FeedCore, aside: FairThreads, message: feed_pb2.DeleteRequest, until: Until, client: str
) -> feed_pb2.DeleteResponse:
    deadline = until()
    deletions = await aside.run(client, partial(convert.deletions_of_message, message))
    results = await in_time(core.delete(deletions, deadline, client), deadline)
    return feed_pb2.DeleteResponse(results=convert.results_to_messages(results))
