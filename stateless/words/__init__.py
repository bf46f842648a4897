"""How rare words are in an index that changes: counts of every shard, added up."""
