"""The shards of one index, as questions see them."""

import time
from collections.abc import Mapping

from winnow.deadline import Clock
from winnow.domain.shard import ShardInfo
from winnow.searcher import Searcher
from winnow.stateless.cluster.sequences import Sequences


class Cluster:
    """Searchers by shard number, with the last `ShardInfo` of each shard.

    The shards stay the same; their infos and replicas may change.
    """

    def __init__(
        self,
        searchers: Mapping[int, Searcher],
        infos: Mapping[int, ShardInfo],
        clock: Clock = time.monotonic,
    ) -> None:
        self.searchers = dict(searchers)
        self.infos = dict(infos)
        self._sequences = Sequences(clock)

    def notice(self, shard: int, sequence: int, log_id: str = "") -> None:
        """Records an acknowledged write: every later question must know of it.

        `log_id` names its log, if that is known. To be called before the writer is told.
        """
        if shard in self.infos:  # another index may be served by now
            self._sequences.acknowledged(self.infos[shard], sequence, log_id)

    def answered(self, shard: int, sequence: int, log_id: str = "") -> None:
        """Records the last write of a shard that answered; `log_id` names its log, if that is
        known.
        """
        self._sequences.answered(self.infos[shard], sequence, log_id)

    def reached(self, shard: int) -> int:
        """The last write that a replica of the shard is known to have; 0 if there was none."""
        return self._sequences.reached(self.infos[shard])

    def needed(self, shard: int) -> int:
        """The write that the shard must have, to be asked a question now; 0 for none."""
        return self._sequences.needed(self.infos[shard])

    @property
    def version(self) -> tuple[int, bool]:
        """Changes whenever `latest` may say something else, as long as `infos` stay."""
        return self._sequences.version

    def latest(self) -> dict[int, int]:
        """The last write of each shard that is known of, whether or not a replica has it."""
        return {shard: self._sequences.latest(info) for shard, info in self.infos.items()}
