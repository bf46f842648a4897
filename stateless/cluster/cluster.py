"""The cluster that a front serves: the searchers, infos and last writes of all shards."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from winnow.deadline import Clock
from winnow.domain.partition import Partition
from winnow.domain.question import EncodedQuestion
from winnow.domain.shard import ShardInfo
from winnow.domain.write import Position
from winnow.searcher import Searcher
from winnow.stateless.cluster.partitioning import partition_of
from winnow.stateless.cluster.sequences import LastKnownWrites
from winnow.stateless.replicas.joint import JointCalls


class Cluster:
    """The shards of one index, each with its searcher and its last `ShardInfo`.

    The set of shards never changes. Their infos and replicas may change.
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
        """Creates a cluster of the shards in `infos`.

        Args:
            searchers: the searcher of each shard.
            infos: the last info of each shard.
            clock: monotonic clock, in seconds.
            joint: sends joint calls; None to call each shard alone.
            earlier: the cluster of the same index before a shard was split; None for a new index.

        """
        self.joint = joint
        self.searchers = dict(searchers)
        self.shard_infos = dict(infos)
        # halves have all writes of their shard, and continue its sequence numbers
        self._last_writes: LastKnownWrites = (
            LastKnownWrites(clock) if earlier is None else earlier._last_writes  # noqa: SLF001
        )
        before: dict[int, Searcher] = {}
        if earlier is not None:
            before = {**earlier.split_shards, **earlier.searchers}
        self.split_shards: dict[int, Searcher] = {
            shard: searcher for shard, searcher in before.items() if shard not in infos
        }
        """The searchers of shards that were split. For a while other fronts still use them."""

    def record_write(self, shard: int, sequence: int, log_id: str = "") -> None:
        """Records an acknowledged write, which every later question requires.

        `log_id` is the name of the log of the write; empty if it is not known. Call this method
        before the caller of the write gets its reply.
        """
        if shard in self.shard_infos:  # the cluster may serve another index since the write began
            self._last_writes.record_write(self.shard_infos[shard], sequence, log_id)

    def record_answer(self, shard: int, sequence: int, log_id: str = "") -> None:
        """Records the last write that an answer of a shard included.

        `log_id` is the name of the log of the write; empty if it is not known.
        """
        self._last_writes.record_answer(self.shard_infos[shard], sequence, log_id)

    def reached_sequence(self, shard: int) -> int:
        """Number of the last write that a replica of the shard is known to have; 0 for none."""
        return self._last_writes.reached(self.shard_infos[shard])

    def required_sequence(self, shard: int) -> int:
        """Number of the write that an answer of the shard must include now; 0 for none."""
        return self._last_writes.required(self.shard_infos[shard])

    def required_sequences(self) -> dict[int, int]:
        """The `required_sequence` of each shard that requires a write."""
        return {
            shard: required
            for shard in self._last_writes.written_shards & self.shard_infos.keys()
            if (required := self.required_sequence(shard))
        }

    def required_writes(self, after: Collection[Position]) -> dict[int, int]:
        """The number of the write that each shard must have; a missing shard needs none.

        This is the write that the caller names in `after`, or the last write that this front
        acknowledged if it is later.
        """
        required = self.required_sequences()
        for write in after:
            required[write.shard] = max(write.sequence, required.get(write.shard, 0))
        return required

    def shards_with_unknown_write(self, after: Collection[Position]) -> frozenset[int]:
        """The shards for which the caller names a write that this front does not know."""
        if not after:
            return frozenset()
        latest = self.latest_sequences()
        return frozenset(write.shard for write in after if write.sequence > latest[write.shard])

    @property
    def token_vectors(self) -> str:
        """The fingerprint of the token vectors of all passages; empty if a shard has none."""
        found = {info.token_vectors for info in self.shard_infos.values()}
        return found.pop() if len(found) == 1 else ""

    def with_usable_tokens(self, question: EncodedQuestion, fingerprint: str) -> EncodedQuestion:
        """Returns the question, without its token vectors if a shard cannot use them.

        Shards rank alike only if all of them use late interaction. `fingerprint` is that of the
        bundle's token vectors.
        """
        if question.tokens is None or self.token_vectors == fingerprint:
            return question
        return replace(question, tokens=None)

    @property
    def index_id(self) -> str:
        """The id of the index."""
        return next(iter(self.shard_infos.values())).index_id

    @property
    def has_tenants(self) -> bool:
        """Whether the index has tenants."""
        return any(info.tenants for info in self.shard_infos.values())

    def searchers_of_tenant(self, tenant: str) -> Mapping[int, Searcher]:
        """The searchers of the shards that may hold passages of a tenant; all for an empty name."""
        if not tenant:
            return self.searchers
        return {shard: self.searchers[shard] for shard in self.partition.shards_of_tenant(tenant)}

    @property
    def partition(self) -> Partition:
        """The split of the index into shards, which tells the shard of each passage."""
        built = next(iter(self.shard_infos.values())).shards
        return partition_of(built, tuple(self.shard_infos))

    @property
    def sequences_version(self) -> tuple[int, bool]:
        """A value that changes whenever `latest_sequences` may change without `shard_infos`."""
        return self._last_writes.version

    def latest_sequences(self) -> dict[int, int]:
        """Number of the last known write of each shard, even if no replica is known to have it."""
        return {shard: self._last_writes.latest(info) for shard, info in self.shard_infos.items()}
