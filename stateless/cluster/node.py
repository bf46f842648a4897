"""A content node as a front node sees it, and whether it is present. Does no I/O itself."""

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
        """`reads`: passages to read that it has in hand for this front; `busy`: whether it has any
        call of this front in hand; `words`: its counts of passages that contain each word.
        """
        self.words = words
        self.address, self.searcher, self.close = address, searcher, close
        self._reads, self.busy = reads, busy
        self.info: ShardInfo | None = None
        """The last good reply, kept while polls fail."""
        self.error: WinnowError | None = UnavailableError(f"{address}: has not replied yet")
        """Why the last poll failed; None if it did not."""
        self.others_reads = 0
        """Passages to read that it had in hand for other fronts at its last reply."""
        self._misses = 0
        self.heard_at = float("-inf")
        """When the last poll that was answered began, on the clock of `Discovery`."""

    def heard(self, info: ShardInfo, at: float = 0.0) -> None:
        """Counts a poll that was answered; `at` is when it began."""
        self.info, self.error, self._misses, self.heard_at = info, None, 0, at
        self.others_reads = max(info.reads_in_hand - self._reads(), 0)

    def missed(self, error: WinnowError) -> None:
        """Counts a poll that failed."""
        self.error = error
        self._misses += 1

    def present(self, misses: int) -> bool:
        """Whether it may get new calls: it replied once, and fewer than `misses` polls in a row
        failed since.

        A node that leaves, is not loaded or refuses connections is left out at the first poll.
        """
        refuses = isinstance(self.error, UnavailableError)
        return self.info is not None and not refuses and self._misses < misses

    @property
    def silent(self) -> bool:
        """Whether the last poll had no reply in time."""
        return isinstance(self.error, DeadlineExceededError)


def present(nodes: Iterable[Node], misses: int) -> dict[str, ShardInfo]:
    """The infos of the nodes that may get new calls, by address.

    A node whose last poll failed is left out already if a replica of the same rows replied: that
    one can be asked while the other has a chance to return.
    """
    there = [(node, node.info) for node in nodes if node.info is not None and node.present(misses)]
    sure = {info.rows for node, info in there if node.error is None}
    return {
        node.address: info for node, info in there if node.error is None or info.rows not in sure
    }


def lost(nodes: Iterable[Node], present: Collection[str]) -> set[str]:
    """The addresses whose calls in hand will not be answered: silent, and not `present`.

    A node that refuses a poll keeps its calls. If it leaves, it ends them by itself, though it
    takes no new connection. If it is dead, they fail by themselves: polls and calls share one
    connection. Only where a process hangs, or the network drops what is sent, do calls hang, too.
    """
    return {node.address for node in nodes if node.silent and node.address not in present}
