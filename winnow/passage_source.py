"""The interface of a shard whose passages can be listed, whether local, remote or fake.

It stands beside `winnow.searcher`: these calls need no question and no model. Implementations:
`content_node.passages.local` (in this process), `stateless.replicas.passages_remote` (over gRPC),
`stateless.replicas.replicated` (all replicas of a shard), `tests.fake_passages` (scripted).
"""

from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.listing import Seen, ShardRequest


class PassageSource(Protocol):
    """The passages of a shard."""

    async def fetch(self, request: ShardRequest[Seen], deadline: Deadline) -> Seen:
        """Returns the result of a request: of a listing, a lookup or a count.

        Each call sees one state of the shard, with at least the writes up to `request.after`.

        Raises a `winnow.errors.WinnowError`: `InvalidRequestError` if the filter is invalid,
        `DeadlineExceededError` after the deadline, `NotServedError` if the node is of an older
        version, `UnavailableError` or `OverloadedError` if the shard cannot serve the call.
        """
