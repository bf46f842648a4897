"""Document frequencies of the words of an index that takes writes, summed over its shards."""
