"""Keeps the word counts of the served index up to date."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.words.source import WordSource
from winnow.stateless.words.statistics import WordStatistics

_log = structlog.get_logger("stateless.words.served")


class ServedWords:
    """The statistics of one index, then of the next one."""

    def __init__(
        self,
        sources: Callable[[int], Sequence[WordSource]],
        pause: Callable[[], Awaitable[object]],
    ) -> None:
        """Has none yet.

        Args:
            sources: the replicas of a shard that may be asked, the one with most writes first.
            pause: is awaited between two rounds of counting.

        """
        self._sources, self._pause = sources, pause
        self._statistics: WordStatistics | None = None

    @property
    def name(self) -> object:
        """Equal for equal counts."""
        return self._statistics.name if self._statistics is not None else ()

    def serve(self, cluster: Cluster) -> WordStatistics:
        """Counts the words of this cluster from now on; returns statistics for its questions."""
        self._statistics = WordStatistics(cluster, self._sources)
        return self._statistics

    async def run(self) -> None:
        """Counts in a loop, until it is cancelled."""
        while True:
            if self._statistics is not None:
                await self._refresh(self._statistics)
            await self._pause()

    async def _refresh(self, statistics: WordStatistics) -> None:
        try:
            await statistics.refresh()
        except Exception:  # noqa: BLE001 (counting must go on)
            _log.exception("counting words failed unexpectedly")
