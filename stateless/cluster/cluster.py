"""The shards of one index: their searchers, infos and last writes."""

import time
from collections.abc import Mapping

from winnow.deadline import Clock
from winnow.domain.shard import ShardInfo
from winnow.searcher import Searcher
from winnow.stateless.cluster.sequences import Sequences
from winnow.stateless.replicas.joint import JointCalls


class Cluster:
    """Searchers and the last `ShardInfo` of each shard, by shard number.

    The set of shards never changes; their infos and replicas may change.
    """

    def __init__(
        self,
        searchers: Mapping[int, Searcher],
        infos: Mapping[int, ShardInfo],
        clock: Clock = time.monotonic,
        joint: JointCalls | None = None,
    ) -> None:
        """`joint` calls nodes for several shards; without it each shard is called alone."""
        self.joint = joint
        self.searchers = dict(searchers)
        self.shard_infos = dict(infos)
        self._sequences = Sequences(clock)

    def record_write(self, shard: int, sequence: int, log_id: str = "") -> None:
        """Records an acknowledged write; every later question requires it.

        `log_id` is the name of its log; empty if unknown. Call it before the writer gets its reply.
        """
        if shard in self.shard_infos:  # the cluster may serve another index by now
            self._sequences.record_write(self.shard_infos[shard], sequence, log_id)

    def record_answer(self, shard: int, sequence: int, log_id: str = "") -> None:
        """Records the last write that an answer of a shard included.

        `log_id` is the name of its log; empty if unknown.
        """
        self._sequences.record_answer(self.shard_infos[shard], sequence, log_id)

    def reached_sequence(self, shard: int) -> int:
        """Number of the last write that a replica of the shard is known to have; 0 for none."""
        return self._sequences.reached(self.shard_infos[shard])

    def required_sequence(self, shard: int) -> int:
        """Number of the write that the shard must have for a question that is sent now; 0 for
        none.
        """
        return self._sequences.required(self.shard_infos[shard])

    def required_sequences(self) -> dict[int, int]:
        """The required sequences that are not 0, by shard."""
        return {
            shard: required
            for shard in self._sequences.written_shards
            if (required := self.required_sequence(shard))
        }

    @property
    def sequences_version(self) -> tuple[int, bool]:
        """Changes whenever `latest_sequences` may change, unless `shard_infos` change."""
        return self._sequences.version

    def latest_sequences(self) -> dict[int, int]:
        """Number of the last known write of each shard, whether or not a replica has it."""
        return {shard: self._sequences.latest(info) for shard, info in self.shard_infos.items()}
