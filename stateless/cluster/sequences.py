"""How far the logs of shards have got, by what nodes, answers and acknowledged writes say.

Nodes are polled now and then. A caller that was told that a write is durable must not wait for the
next poll, least of all after a deletion. Knows numbers and a clock; asks no node.
"""

from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.domain.shard import ShardInfo
from winnow.policy.logs import same_log

PATIENCE = 2.0
"""Seconds for which an acknowledged write is waited for while no node says that it has it: some
polls. In a replicated log, the replica that had it may be gone, and the others may take long to
catch up: then questions are answered without it, and say so.
"""


@dataclass(frozen=True, slots=True)
class _LastWrite:
    log_id: str
    """Another log counts its own writes; empty if it was not named."""
    sequence: int
    at: float


class Sequences:
    """The last writes of all shards of one index."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._acknowledged: dict[int, _LastWrite] = {}
        self._answered: dict[int, _LastWrite] = {}
        self._changes = 0
        self._settles = float("-inf")
        """When the logs are known that were begun by what was learnt."""

    @property
    def version(self) -> tuple[int, bool]:
        """Changes whenever `latest` may say something else of the same infos."""
        return self._changes, self._clock() < self._settles

    def acknowledged(self, info: ShardInfo, sequence: int, log_id: str = "") -> None:
        """A write of this shard is durable. It is of the log that the shard said it follows, unless
        `log_id` names another one, which does not count then: a shard that was restored has a new
        log, and replies of the old one may come late.
        """
        self._learn(self._acknowledged, info, sequence, log_id)

    def answered(self, info: ShardInfo, sequence: int, log_id: str = "") -> None:
        """A replica of this shard has this write, of a log as in `acknowledged`."""
        self._learn(self._answered, info, sequence, log_id)

    def reached(self, info: ShardInfo) -> int:
        """The last write that a replica is known to have; `info` is what the shard said last."""
        return max(info.sequence, self._of(self._answered, info))

    def latest(self, info: ShardInfo) -> int:
        """The last write that is known of."""
        return max(self.reached(info), self._of(self._acknowledged, info))

    def needed(self, info: ShardInfo) -> int:
        """The write that a question asked now must know of."""
        sequence = self._of(self._acknowledged, info)
        if sequence <= info.sequence:
            return sequence
        waited = self._clock() - self._acknowledged[info.shard].at
        return sequence if waited < PATIENCE else info.sequence

    def _learn(
        self, known: dict[int, _LastWrite], info: ShardInfo, sequence: int, log_id: str
    ) -> None:
        if same_log(log_id, info.log_id) and sequence > self._of(known, info):
            now = self._clock()
            known[info.shard] = _LastWrite(log_id or info.log_id, sequence, now)
            self._changes += 1
            self._settles = now + PATIENCE if log_id != info.log_id else self._settles

    def _of(self, known: dict[int, _LastWrite], info: ShardInfo) -> int:
        learnt = known.get(info.shard)
        if learnt is None:
            return 0
        # its first write begins the log of a shard: it is known before the next poll reports it
        began = not info.log_id and self._clock() - learnt.at < PATIENCE
        return learnt.sequence if began or learnt.log_id == info.log_id else 0
