"""Keeps the word counts of the served index up to date."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from winnow.shard_writer import WordSource
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.words.statistics import WordStatistics

_log = structlog.get_logger("stateless.words.served")


class ServedWords:
    """Keeps the word statistics of the served index. A new index gets new statistics."""

    def __init__(
        self, sources: Callable[[int], Sequence[WordSource]], pause: Callable[[], Awaitable[object]]
    ) -> None:
        """Creates an object without statistics.

        Args:
            sources: returns a source for each replica of a shard, the one with most writes first.
            pause: is awaited between two refreshes.

        """
        self._sources, self._pause = sources, pause
        self._statistics: WordStatistics | None = None

    @property
    def name(self) -> object:
        """Name of the current counts. Equal names mean equal counts."""
        return self._statistics.name if self._statistics is not None else ()

    def statistics_of(self, cluster: Cluster) -> WordStatistics:
        """Makes `cluster` the counted cluster; returns the statistics for its questions."""
        if self._statistics is None or self._statistics.index_id != cluster.index_id:
            self._statistics = WordStatistics(cluster, self._sources)
        else:
            self._statistics.replace_cluster(cluster)
        return self._statistics

    async def run(self) -> None:
        """Refreshes the counts periodically; never returns."""
        while True:
            await self.refresh()
            await self._pause()

    async def refresh(self) -> None:
        """Fetches the counts that changed. Logs errors: the last counts stay."""
        if self._statistics is None:
            return
        try:
            await self._statistics.refresh()
        except Exception:  # noqa: BLE001 (counting must continue)
            _log.exception("counting words failed unexpectedly")
