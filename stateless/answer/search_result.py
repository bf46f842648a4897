"""The result of searching the shards for one question: readings and failures of shards."""

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field

from winnow.domain.answered import ShardTimings
from winnow.domain.coverage import ShardStatus
from winnow.domain.reading import Reading
from winnow.domain.stopping import StoppingRule
from winnow.policy.logs import same_log
from winnow.quoting import were
from winnow.searcher import Read, Retrieved
from winnow.stateless.answer.failures import Failure, incomplete_error
from winnow.stateless.answer.scatter import ScatterResult


@dataclass(slots=True)
class SearchResult:
    """The readings and failures of all shards, added as they arrive. All mappings are by shard.

    A shard usually has readings or a failure. It has both if it failed after reading some passages,
    and neither if none of its passages was chosen.
    """

    readings: dict[int, tuple[Reading, ...]] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    _: KW_ONLY
    allows_partial: bool = True
    """Whether an answer may leave out shards that failed."""
    timings: dict[int, ShardTimings] = field(default_factory=dict)
    """Seconds that each shard reported."""
    unneeded_reads: int = 0
    """Number of passages that were read speculatively and not needed."""
    sequences: dict[int, int] = field(default_factory=dict)
    """Number of the last write that the shard had when it retrieved."""
    passages: dict[int, int] = field(default_factory=dict)
    """Number of passages that the shard held after this write, if it reported the number."""
    log_ids: dict[int, str] = field(default_factory=dict)
    """Name of the log that contains this write, if the shard reported the name."""
    rule: StoppingRule | None = None
    """The rule of early stopping; None if all passages are read."""
    lost_late_interaction: bool = False
    """Whether passages were ranked without late interaction, although all shards have token
    vectors. The next question may be ranked with it.
    """

    @property
    def needed_reads(self) -> int:
        """Number of needed readings. Speculative reads do not change this number."""
        return sum(map(len, self.readings.values()))

    @property
    def total_reads(self) -> int:
        """Number of passages that were read, needed or not."""
        return self.needed_reads + self.unneeded_reads

    def best_score(self, more: Iterable[Reading] = ()) -> float:
        """The best score of the readings so far and of `more`; minus infinity without readings."""
        scores = (reading.score for own in (*self.readings.values(), more) for reading in own)
        return max((score for score in scores if not math.isnan(score)), default=-math.inf)

    def add_retrievals(self, gathered: ScatterResult[Retrieved]) -> None:
        """Adds the timings, writes and failures of retrievals."""
        for shard, retrieved in gathered.results.items():
            self.add_retrieval(shard, retrieved)
        self.failures |= gathered.failures

    def add_retrieval(self, shard: int, retrieved: Retrieved) -> None:
        """Adds the timings and the last write of one retrieval."""
        self._add_timings(shard, retrieved.timings)
        self.record_write(shard, retrieved)

    def add_reads(self, gathered: ScatterResult[Read]) -> None:
        """Adds reads. If a read left passages unread, its shard also gets a failure.

        Raises:
            DeadlineExceededError: a passage was not read in time, and partial results are
                forbidden.

        """
        for shard, read in gathered.results.items():
            self._add_timings(shard, read.timings)
            self.add_readings(shard, read.readings)
        late = {n: _unread_failure(read) for n, read in gathered.results.items() if read.unread}
        self.failures |= gathered.failures | late
        if late and not self.allows_partial:
            raise incomplete_error(late)

    def add_readings(self, shard: int, readings: Iterable[Reading]) -> None:
        """Adds readings of a shard."""
        if added := tuple(readings):
            self.readings[shard] = self.readings.get(shard, ()) + added

    def record_write(self, shard: int, result: Retrieved | Read) -> None:
        """Records the last write that a shard had when it retrieved, and its number of passages.

        If the shard retrieved twice, the earlier write counts, because both retrievals had it. If
        the two writes are in different logs, neither counts.
        """
        log_id = self.log_ids.get(shard, "")
        sequence = result.sequence if same_log(log_id, result.log_id) else 0
        self.log_ids[shard] = result.log_id or log_id
        if sequence > self.sequences.get(shard, sequence):
            return
        self.sequences[shard] = sequence
        self.passages.pop(shard, None)
        if result.passages is not None:
            self.passages[shard] = result.passages

    def _add_timings(self, shard: int, timings: ShardTimings) -> None:
        before = self.timings.get(shard)
        self.timings[shard] = timings if before is None else before + timings


def _unread_failure(read: Read) -> Failure:
    requested = len(read.readings) + read.unread
    return Failure(
        ShardStatus.TIMEOUT, f"{read.unread} of {were(requested, 'passage')} not read in time"
    )
