"""What one stream that feeds has in hand, and the outcomes of its writes."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from winnow.domain.write import FeedSummary, Outcome, Position, WriteResult


class IdsInHand:
    """Ids that messages of the stream write and that are not stored yet."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def holding(self, ids: Collection[str]) -> Iterator[frozenset[str]]:
        """Holds the ids of the next message; gives the ones that earlier messages hold, too."""
        own = set(ids)
        before = frozenset(name for name in own if self._held[name])
        self._held.update(own)
        try:
            yield before
        finally:
            self._held.subtract(own)
            self._held = +self._held


class StreamTally:
    """Counts outcomes, and keeps the last position in each shard."""

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
