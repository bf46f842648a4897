"""What the shards found for one question: readings, failures, and often both."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from winnow.domain.answered import ShardTimings
from winnow.domain.coverage import ShardStatus
from winnow.domain.reading import Reading
from winnow.policy.logs import same_log
from winnow.quoting import were
from winnow.searcher import Read, Retrieved
from winnow.stateless.answer.failures import Failure, incomplete
from winnow.stateless.answer.scatter import Gathered


@dataclass(frozen=True, slots=True)
class Searched:
    """What a question found. A shard has readings or a failure, both if it failed after it had
    read some passages, or neither if it had nothing worth reading.
    """

    readings: Mapping[int, tuple[Reading, ...]]
    failures: Mapping[int, Failure]
    _: KW_ONLY
    in_vain: int = 0
    """Number of passages that were read ahead, and turned out not to be needed."""
    sequences: Mapping[int, int] = field(default_factory=dict)
    """The last write that a shard had when it retrieved, by shard."""
    passages: Mapping[int, int] = field(default_factory=dict)
    """Number of passages that a shard held after that write, by shard, where it said so."""
    logs: Mapping[int, str] = field(default_factory=dict)
    """Names of the logs that `sequences` count in, by shard, where they are known."""

    @property
    def needed(self) -> int:
        """Number of passages that count: the same, however many were read ahead."""
        return sum(map(len, self.readings.values()))

    @property
    def read(self) -> int:
        """Number of passages that were read, needed or not."""
        return self.needed + self.in_vain


@dataclass(slots=True)
class Findings:
    """What was found so far. Readings stay if something fails after them."""

    partial: bool
    """Whether an answer may leave out shards that failed."""
    spent: dict[int, ShardTimings]
    """Seconds by shard; added to here."""
    _: KW_ONLY
    readings: dict[int, list[Reading]] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    passages: dict[int, int] = field(default_factory=dict)
    logs: dict[int, str] = field(default_factory=dict)

    def retrieved(self, gathered: Gathered[Retrieved]) -> None:
        """Adds what retrieving took and how it failed."""
        for shard, result in gathered.results.items():
            self.spend(shard, result.timings)
            self.knew(shard, result)
        self.failures |= gathered.failures

    def add(self, gathered: Gathered[Read]) -> None:
        """Adds reads. A read that left passages unread is a failure of its shard, too.

        Raises:
            DeadlineExceededError: a passage was not read in time, and partial results are
                forbidden.

        """
        for shard, read in gathered.results.items():
            self.spend(shard, read.timings)
            self.keep(shard, read.readings)
        late = {n: _left_unread(read) for n, read in gathered.results.items() if read.unread}
        self.failures |= gathered.failures | late
        if late and not self.partial:
            raise incomplete(late)

    def keep(self, shard: int, readings: Iterable[Reading]) -> None:
        """Adds readings of a shard."""
        self.readings.setdefault(shard, []).extend(readings)

    def knew(self, shard: int, result: Retrieved | Read) -> None:
        """Notes the last write that a shard had when it retrieved, and its passages then.

        If it retrieved twice, the earlier write counts: a write that is said to be known was known
        each time. If the two are of different logs, no write is.
        """
        log = self.logs.get(shard, "")
        sequence = result.sequence if same_log(log, result.log_id) else 0
        self.logs[shard] = result.log_id or log
        if sequence > self.sequences.get(shard, sequence):
            return
        self.sequences[shard] = sequence
        self.passages.pop(shard, None)
        if result.passages is not None:
            self.passages[shard] = result.passages

    def spend(self, shard: int, timings: ShardTimings) -> None:
        """Adds the time that a shard took."""
        self.spent[shard] = self.spent.get(shard, ShardTimings()) + timings

    @property
    def best(self) -> float:
        """The best score so far; minus infinity if there is none."""
        scores = (reading.score for own in self.readings.values() for reading in own)
        return max((score for score in scores if not math.isnan(score)), default=-math.inf)

    def searched(self, in_vain: int = 0) -> Searched:
        """The result; `in_vain`: number of passages that were read and not needed."""
        return Searched(
            {shard: tuple(own) for shard, own in self.readings.items() if own},
            self.failures,
            in_vain=in_vain,
            sequences=self.sequences,
            passages=self.passages,
            logs=self.logs,
        )


def _left_unread(read: Read) -> Failure:
    asked = len(read.readings) + read.unread
    return Failure(
        ShardStatus.TIMEOUT, f"{read.unread} of {were(asked, 'passage')} not read in time"
    )
