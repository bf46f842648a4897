"""A content node as a front node sees it, and whether it is there. Does no I/O of its own."""

from collections.abc import Awaitable, Callable, Iterable

from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError, WinnowError
from winnow.searcher import Searcher


class Node:
    """A content node and what it said last."""

    def __init__(
        self,
        address: str,
        searcher: Searcher,
        close: Callable[[], Awaitable[None]],
        reads: Callable[[], int] = lambda: 0,
    ) -> None:
        """`reads`: passages that this front has asked it to read and that it has in hand."""
        self.address, self.searcher, self.close, self._reads = address, searcher, close, reads
        self.info: ShardInfo | None = None
        """The last good one, kept while the node is silent."""
        self.error: WinnowError | None = UnavailableError(f"{address}: has not replied yet")
        """Why it said nothing the last time."""
        self.others_reads = 0
        """Passages that it had in hand for other fronts when it replied last."""
        self._misses = 0

    def heard(self, info: ShardInfo) -> None:
        """It replied."""
        self.info, self.error, self._misses = info, None, 0
        self.others_reads = max(info.reads_in_hand - self._reads(), 0)

    def missed(self, error: WinnowError) -> None:
        """It did not."""
        self.error = error
        self._misses += 1

    def present(self, misses: int) -> bool:
        """Whether it may be asked questions: it replied, and was not silent so often since.

        One that refuses connections, drains or is not loaded says so, and is gone at once.
        """
        gone = isinstance(self.error, UnavailableError)
        return self.info is not None and not gone and self._misses < misses


def present(nodes: Iterable[Node], misses: int) -> dict[str, ShardInfo]:
    """What those said of themselves that may be asked questions, by address.

    Left out are those that are gone, and at the first reply that is missing also those that have a
    replica which replied: it can be asked while the other one has a chance to return.
    """
    there = [(node, node.info) for node in nodes if node.info is not None and node.present(misses)]
    sure = {info.rows for node, info in there if node.error is None}
    return {
        node.address: info for node, info in there if node.error is None or info.rows not in sure
    }
