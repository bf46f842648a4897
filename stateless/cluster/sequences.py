"""The last known write of each shard, from polls, answers and acknowledged writes.

Polls alone would be too late: after an acknowledged write, above all a deletion, no answer may lack
the write until the next poll. This module knows sequence numbers and a clock. It calls no node.
"""

from collections.abc import KeysView
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.domain.shard import ShardInfo
from winnow.policy.logs import same_log

MAX_WAIT_FOR_REPLICA = 2.0
"""Seconds during which questions require an acknowledged write that no present node reports.

They count from the first question that finds no such node. This is the time of several polls, and
usually enough for another replica to read the write from the journal. After that the replicas with
the write have probably failed, and the others may need long. Then questions are answered without
the write, and the coverage of their answers names the last write that was included.
"""


@dataclass(frozen=True, slots=True)
class _LastWrite:
    log_id: str
    """Name of the log of the write; may be empty."""
    sequence: int
    """Number of the write."""
    recorded_at: float


class LastKnownWrites:
    """The last known writes of all shards of one index.

    The parameter `info` of its methods is the last report of a shard.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written: dict[int, _LastWrite] = {}
        self._answered: dict[int, _LastWrite] = {}
        self._missed_since: dict[int, tuple[int, float]] = {}
        """The required write that no report of a shard includes, and when that was first seen."""
        self._changes = 0
        self._log_confirmed_at = float("-inf")
        """When polls should have reported the log of the last recorded write."""

    @property
    def version(self) -> tuple[int, bool]:
        """A value that changes whenever `latest` may return another number for the same info."""
        return self._changes, self._clock() < self._log_confirmed_at

    @property
    def written_shards(self) -> KeysView[int]:
        """The shards with a recorded write. For all other shards `required` is 0."""
        return self._written.keys()

    def record_write(self, info: ShardInfo, sequence: int, log_id: str = "") -> None:
        """Records a durable write of a shard.

        The write is ignored if `log_id` names another log than `info`: a restored shard has a new
        log, and replies about writes of the old log may arrive late.
        """
        self._record(self._written, info, sequence, log_id)

    def record_answer(self, info: ShardInfo, sequence: int, log_id: str = "") -> None:
        """Records that a replica has a write. A write of another log is ignored, as in
        `record_write`.
        """
        last = self._answered.get(info.shard)
        if last and sequence <= last.sequence and info.log_id == last.log_id:
            return  # fast path: nearly every answer has no new write
        self._record(self._answered, info, sequence, log_id)

    def reached(self, info: ShardInfo) -> int:
        """Number of the last write that a replica is known to have."""
        return max(info.sequence, self._sequence(self._answered, info))

    def latest(self, info: ShardInfo) -> int:
        """Number of the last known write, even if no replica is known to have it."""
        return max(self.reached(info), self._sequence(self._written, info))

    def required(self, info: ShardInfo) -> int:
        """Number of the write that an answer must include now."""
        sequence = self._sequence(self._written, info)
        if sequence <= info.sequence:
            self._missed_since.pop(info.shard, None)
            return sequence
        now = self._clock()
        missed, since = self._missed_since.get(info.shard, (0, now))
        if missed != sequence:
            since = now
            self._missed_since[info.shard] = sequence, now
        return sequence if now - since < MAX_WAIT_FOR_REPLICA else info.sequence

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
        # the first write creates the log of the shard, whose name is known after the next poll
        age = self._clock() - write.recorded_at
        is_new_log = not info.log_id and age < MAX_WAIT_FOR_REPLICA
        return write.sequence if is_new_log or write.log_id == info.log_id else 0
