"""A content node with its last replies, and the rules of its presence. Does no I/O itself."""

from collections.abc import Awaitable, Callable, Collection, Iterable

from winnow.domain.shard import ShardInfo
from winnow.errors import DeadlineExceededError, UnavailableError, WinnowError
from winnow.searcher import Searcher
from winnow.stateless.words.source import WordSource


class Node:
    """A content node and its last replies."""

    def __init__(
        self,
        address: str,
        searcher: Searcher,
        close: Callable[[], Awaitable[None]],
        *,
        reads: Callable[[], int] = lambda: 0,
        busy: Callable[[], bool] = lambda: False,
        words: WordSource | None = None,
    ) -> None:
        """Creates a node that has not replied yet.

        Args:
            address: address of the node.
            searcher: calls the node.
            close: closes the connection to the node.
            reads: returns the number of passages that the node is reading for this front.
            busy: returns whether a call of this front to the node is running.
            words: counts of passages that contain each word.

        """
        self.words = words
        self.address, self.searcher, self.close = address, searcher, close
        self._reads, self.busy = reads, busy
        self.info: ShardInfo | None = None
        """The last successful reply, kept while polls fail."""
        self.error: WinnowError | None = UnavailableError(f"{address}: has not replied yet")
        """The error of the last poll; None if it succeeded."""
        self.others_reads = 0
        """Number of passages that it was reading for other fronts at its last reply."""
        self._misses = 0
        self.replied_at = float("-inf")
        """Time at which the last successful poll began, on the clock of `Discovery`."""

    def record_reply(self, info: ShardInfo, started: float = 0.0) -> None:
        """Records a successful poll that began at the time `started`."""
        self.info, self.error, self._misses, self.replied_at = info, None, 0, started
        self.others_reads = max(info.reads_in_hand - self._reads(), 0)

    def record_failure(self, error: WinnowError) -> None:
        """Records a failed poll."""
        self.error = error
        self._misses += 1

    def is_present(self, max_misses: int) -> bool:
        """Whether the node may get new calls.

        It may if it replied once and fewer than `max_misses` consecutive polls failed since. A node
        that leaves, is not loaded or refuses connections is absent after one poll.
        """
        refuses = isinstance(self.error, UnavailableError)
        return self.info is not None and not refuses and self._misses < max_misses

    @property
    def is_silent(self) -> bool:
        """Whether the last poll timed out."""
        return isinstance(self.error, DeadlineExceededError)


def present(nodes: Iterable[Node], max_misses: int) -> dict[str, ShardInfo]:
    """The infos of the nodes that may get new calls, by address.

    A node whose last poll failed is left out if another node with the same rows replied.
    """
    infos = [(n, n.info) for n in nodes if n.info is not None and n.is_present(max_misses)]
    confirmed = {info.rows for node, info in infos if node.error is None}
    return {
        node.address: info
        for node, info in infos
        if node.error is None or info.rows not in confirmed
    }


def lost_addresses(nodes: Iterable[Node], present: Collection[str]) -> set[str]:
    """The addresses of nodes whose running calls will not be answered: silent and not `present`.

    A node that refuses a poll keeps its calls. If it leaves, it finishes them, though it takes no
    new connection. If it is dead, they fail by themselves: polls and calls share one connection.
    Calls hang only if the process hangs or the network drops packets.
    """
    return {node.address for node in nodes if node.is_silent and node.address not in present}
