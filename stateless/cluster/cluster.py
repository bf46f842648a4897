"""The shards of one index: their searchers, infos and last writes."""

import time
from collections.abc import Mapping

from winnow.deadline import Clock
from winnow.domain.partition import Partition
from winnow.domain.shard import ShardInfo
from winnow.searcher import Searcher
from winnow.stateless.cluster.partitioning import partition_of
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
        *,
        joint: JointCalls | None = None,
        earlier: "Cluster | None" = None,
    ) -> None:
        """Takes the shards of an index.

        Args:
            searchers: by shard.
            infos: by shard.
            clock: reads a time in seconds.
            joint: calls nodes for several shards; without it each shard is called alone.
            earlier: the cluster of the same index before a shard was split.

        """
        self.joint = joint
        self.searchers = dict(searchers)
        self.shard_infos = dict(infos)
        # halves go on with the numbers of their shard, and have all its writes
        self._sequences: Sequences = Sequences(clock) if earlier is None else earlier._sequences  # noqa: SLF001
        before: dict[int, Searcher] = {}
        if earlier is not None:
            before = {**earlier.split_shards, **earlier.searchers}
        self.split_shards: dict[int, Searcher] = {
            shard: searcher for shard, searcher in before.items() if shard not in infos
        }
        """Shards that were split. For a while other fronts still use them."""

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
            for shard in self._sequences.written_shards & self.shard_infos.keys()
            if (required := self.required_sequence(shard))
        }

    @property
    def index_id(self) -> str:
        """The index."""
        return next(iter(self.shard_infos.values())).index_id

    @property
    def partition(self) -> Partition:
        """The shards, by which a passage belongs to one of them."""
        built = next(iter(self.shard_infos.values())).shards
        return partition_of(built, tuple(self.shard_infos))

    @property
    def sequences_version(self) -> tuple[int, bool]:
        """Changes whenever `latest_sequences` may change, unless `shard_infos` change."""
        return self._sequences.version

    def latest_sequences(self) -> dict[int, int]:
        """Number of the last known write of each shard, whether or not a replica has it."""
        return {shard: self._sequences.latest(info) for shard, info in self.shard_infos.items()}
