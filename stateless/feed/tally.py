"""What became of the writes of a stream, counted while it goes on."""

from collections import Counter
from collections.abc import Iterable

from winnow.domain.write import FeedSummary, Outcome, Position, WriteResult


class Tally:
    """Outcomes, and the last position in each shard."""

    def __init__(self) -> None:
        self._outcomes: Counter[Outcome] = Counter()
        self._last: dict[int, int] = {}

    def add(self, results: Iterable[WriteResult]) -> None:
        """Counts the writes of a message."""
        for each in results:
            shard, sequence = each.position.shard, each.position.sequence
            self._outcomes[each.outcome] += 1
            self._last[shard] = max(sequence, self._last.get(shard, 0))

    def summary(self) -> FeedSummary:
        """What is to be told."""
        return FeedSummary(
            self._outcomes[Outcome.STORED],
            self._outcomes[Outcome.UNCHANGED],
            self._outcomes[Outcome.OUTDATED],
            tuple(Position(shard, last) for shard, last in sorted(self._last.items())),
        )
