"""The shards of one index, as questions see them."""

from collections.abc import Mapping

from winnow.domain.shard import ShardInfo
from winnow.searcher import Searcher


class Cluster:
    """Searchers by shard number, with the last `ShardInfo` of each shard.

    The shards stay the same; their infos and replicas may change.
    """

    def __init__(self, searchers: Mapping[int, Searcher], infos: Mapping[int, ShardInfo]) -> None:
        self.searchers = dict(searchers)
        self.infos = dict(infos)
