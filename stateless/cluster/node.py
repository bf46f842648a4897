"""A content node with its last replies, and the rules that decide whether it is present.

The module does no I/O.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from typing import NamedTuple, Protocol

from winnow.deadline import Deadline
from winnow.domain.shard import NodeReport, ShardFault, ShardInfo
from winnow.errors import DeadlineExceededError, UnavailableError, WinnowError
from winnow.searcher import ContentNode
from winnow.shard_writer import WordSource


class ReplicaAt(NamedTuple):
    """A replica: a shard at the address of a content node."""

    address: str
    shard: int


ReplicaInfos = dict[ReplicaAt, ShardInfo]
"""The last report of each replica."""


ReceiveReport = Callable[[NodeReport | WinnowError, float], None]
"""Receives the report of a node or the error of its poll, and when the poll started."""


class NodePolls(Protocol):
    """Polls a content node for one index together with other indexes of the front.

    `stateless.replicas.shared_polls` implements it.
    """

    def follow(self, receive: ReceiveReport, is_due_soon: Callable[[], bool]) -> None:
        """Lets polls for other indexes include this one.

        `receive` gets the result of each poll that includes this index. `is_due_soon` tells whether
        a poll for another index should include this one.
        """

    async def poll(self, deadline: Deadline) -> None:
        """Polls the node, or waits for a running poll. The result has been received at the end."""


class Node:
    """A content node of the front, with its last replies to polls."""

    def __init__(
        self,
        address: str,
        content: ContentNode,
        close: Callable[[], Awaitable[None]],
        *,
        reads: Callable[[], int] = lambda: 0,
        busy: Callable[[], bool] = lambda: False,
        words: Callable[[int], WordSource | None] = lambda _: None,
        polls: NodePolls | None = None,
    ) -> None:
        """Creates a node that has not replied yet.

        Args:
            address: address of the node.
            content: calls the node.
            close: closes the connection to the node.
            reads: returns the number of passages that the node is reading for this front.
            busy: returns whether a call of this front to the node is running.
            words: returns the source of the word counts of a shard, or None.
            polls: polls the node together with other indexes; None to poll `content`.

        """
        self.address, self.content, self.close, self.polls = address, content, close, polls
        self._reads, self.busy, self.words = reads, busy, words
        self.report: NodeReport | None = None
        """The last successful reply, which is kept while polls fail."""
        self._infos: dict[int, ShardInfo] = {}
        """The last report of each shard of the node, by shard."""
        self.error: WinnowError | None = UnavailableError(f"{address}: has not replied yet")
        """The error of the last poll; None if it succeeded."""
        self.others_reads = 0
        """Number of passages that the node was reading for other fronts at its last reply."""
        self._misses = 0
        self.replied_at = float("-inf")
        """When the last successful poll started, on the clock of `Discovery`."""
        self.polled_at = float("-inf")
        """When the last poll started, on the same clock."""

    @property
    def infos(self) -> tuple[ShardInfo, ...]:
        """The shards that the node served when it last replied."""
        return self.report.infos if self.report is not None else ()

    @property
    def faults(self) -> tuple[ShardFault, ...]:
        """The shards that the node should have served but did not when it last replied."""
        return self.report.faults if self.report is not None else ()

    def info(self, shard: int) -> ShardInfo | None:
        """The last report of a shard; None if the node does not serve the shard."""
        return self._infos.get(shard)

    def errors(self) -> Iterator[tuple[int | None, WinnowError]]:
        """Yields pairs of a shard and its error. The shard is None if it is unknown."""
        if self.error is not None:
            known = [*(info.shard for info in self.infos), *(each.shard for each in self.faults)]
            yield from ((shard, self.error) for shard in known or [None])
        else:
            yield from ((fault.shard, fault.error) for fault in self.faults)

    def record(self, result: NodeReport | WinnowError, started: float) -> None:
        """Records the result of a poll that started at the time `started`."""
        self.polled_at = started
        if isinstance(result, NodeReport):
            self.record_reply(result, started)
        else:
            self.record_failure(result)

    def record_reply(self, report: NodeReport, started: float = 0.0) -> None:
        """Records a successful poll that started at the time `started`."""
        self.report, self.error, self._misses, self.replied_at = report, None, 0, started
        self._infos = {info.shard: info for info in reversed(report.infos)}
        reads = max((info.reads_in_hand for info in report.infos), default=0)
        self.others_reads = max(reads - self._reads(), 0)

    def record_failure(self, error: WinnowError) -> None:
        """Records a failed poll."""
        self.error = error
        self._misses += 1

    def is_present(self, max_misses: int) -> bool:
        """Whether the node may get new calls.

        It may if it served a shard when it last replied, and fewer than `max_misses` polls have
        failed since. A node that leaves or refuses connections is absent after one failed poll.
        """
        refuses = isinstance(self.error, UnavailableError)
        return bool(self.infos) and not refuses and self._misses < max_misses

    @property
    def is_silent(self) -> bool:
        """Whether the last poll timed out."""
        return isinstance(self.error, DeadlineExceededError)


def present_replicas(nodes: Iterable[Node], max_misses: int) -> ReplicaInfos:
    """Returns the last reports of the replicas that may get new calls.

    A replica is left out if the last poll of its node failed, and a replica with the same identity
    has replied.
    """
    infos = [(node, i) for node in nodes if node.is_present(max_misses) for i in node.infos]
    confirmed = {info.replica_identity for node, info in infos if node.error is None}
    return {
        ReplicaAt(node.address, info.shard): info
        for node, info in infos
        if node.error is None or info.replica_identity not in confirmed
    }


def lost_replicas(nodes: Iterable[Node], present: Collection[ReplicaAt]) -> set[ReplicaAt]:
    """Returns the replicas whose running calls should be given up: their node is silent, and they
    are not `present`.

    Calls to a node that refuses polls are not given up. A leaving node finishes them, although it
    refuses new connections. If the node is dead, its calls fail at once, because polls and calls
    share one connection. Calls hang only if the process hangs or the network drops packets.
    """
    silent = (ReplicaAt(n.address, i.shard) for n in nodes if n.is_silent for i in n.infos)
    return {replica for replica in silent if replica not in present}
