"""The last known write of each shard, from polls, answers and acknowledged writes.

Nodes are polled periodically. A caller whose write was acknowledged must not wait for the next
poll, least of all after a deletion. Knows numbers and a clock; calls no node.
"""

from collections.abc import KeysView
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.domain.shard import ShardInfo
from winnow.policy.logs import same_log

MAX_WAIT_FOR_REPLICA = 2.0
"""Seconds for which questions require an acknowledged write that no node has reported yet: a few
polls. The replica that took it may have failed, and the others may take long to read the journal.
Then questions are answered without the write, and their coverage has the last write that counts.
"""


@dataclass(frozen=True, slots=True)
class _LastWrite:
    log_id: str
    """Name of the log that `sequence` counts in; may be empty."""
    sequence: int
    recorded_at: float


class Sequences:
    """The last known writes of all shards of one index. `info` is the last report of a shard."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written: dict[int, _LastWrite] = {}
        self._answered: dict[int, _LastWrite] = {}
        self._changes = 0
        self._log_confirmed_at = float("-inf")
        """Time by which polls report the log of the last recorded write."""

    @property
    def version(self) -> tuple[int, bool]:
        """Changes whenever `latest` may return another number for the same info."""
        return self._changes, self._clock() < self._log_confirmed_at

    @property
    def written_shards(self) -> KeysView[int]:
        """The shards of which a write was recorded; `required` is 0 for all others."""
        return self._written.keys()

    def record_write(self, info: ShardInfo, sequence: int, log_id: str = "") -> None:
        """Records a durable write of a shard.

        It is ignored if `log_id` names another log than `info`: a restored shard has a new log, and
        replies of the old one may arrive late.
        """
        self._record(self._written, info, sequence, log_id)

    def record_answer(self, info: ShardInfo, sequence: int, log_id: str = "") -> None:
        """Records that a replica has a write. Another log is ignored, as in `record_write`."""
        last = self._answered.get(info.shard)
        if last and sequence <= last.sequence and info.log_id == last.log_id:
            return  # the case of nearly every answer
        self._record(self._answered, info, sequence, log_id)

    def reached(self, info: ShardInfo) -> int:
        """Number of the last write that a replica is known to have."""
        return max(info.sequence, self._sequence(self._answered, info))

    def latest(self, info: ShardInfo) -> int:
        """Number of the last known write, whether or not a replica has it."""
        return max(self.reached(info), self._sequence(self._written, info))

    def required(self, info: ShardInfo) -> int:
        """Number of the write that an answer must include now."""
        sequence = self._sequence(self._written, info)
        if sequence <= info.sequence:
            return sequence
        age = self._clock() - self._written[info.shard].recorded_at
        return sequence if age < MAX_WAIT_FOR_REPLICA else info.sequence

    def _record(
        self, writes: dict[int, _LastWrite], info: ShardInfo, sequence: int, log_id: str
    ) -> None:
        if same_log(log_id, info.log_id) and sequence > self._sequence(writes, info):
            now = self._clock()
            writes[info.shard] = _LastWrite(log_id or info.log_id, sequence, now)
            self._changes += 1
            if log_id != info.log_id:
                self._log_confirmed_at = now + MAX_WAIT_FOR_REPLICA

    def _sequence(self, writes: dict[int, _LastWrite], info: ShardInfo) -> int:
        write = writes.get(info.shard)
        if write is None:
            return 0
        # the first write of a shard creates its log, which only the next poll reports
        age = self._clock() - write.recorded_at
        is_new_log = not info.log_id and age < MAX_WAIT_FOR_REPLICA
        return write.sequence if is_new_log or write.log_id == info.log_id else 0
