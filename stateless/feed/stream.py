"""The state of one feeding stream: its ids in flight, and the outcomes of its writes."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from winnow.domain.write import FeedSummary, Outcome, Position, WriteResult


class IdsInFlight:
    """Counts the passage ids that the messages of a stream are writing."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def track(self, ids: Collection[str]) -> Iterator[frozenset[str]]:
        """Counts the ids of the next message within the context.

        Yields those of its ids that earlier messages are still writing.
        """
        own = set(ids)
        earlier = frozenset(each for each in own if self._counts[each])
        self._counts.update(own)
        try:
            yield earlier
        finally:
            self._counts.subtract(own)
            self._counts = +self._counts


class StreamTally:
    """Counts the outcomes of writes, and keeps the last position in each shard."""

    def __init__(self) -> None:
        self._outcomes: Counter[Outcome] = Counter()
        self._last: dict[int, int] = {}

    def add(self, results: Iterable[WriteResult]) -> None:
        for each in results:
            shard, sequence = each.position.shard, each.position.sequence
            self._outcomes[each.outcome] += 1
            self._last[shard] = max(sequence, self._last.get(shard, 0))

    def summary(self) -> FeedSummary:
        return FeedSummary(
            self._outcomes[Outcome.STORED],
            self._outcomes[Outcome.UNCHANGED],
            self._outcomes[Outcome.OUTDATED],
            tuple(Position(shard, last) for shard, last in sorted(self._last.items())),
        )
