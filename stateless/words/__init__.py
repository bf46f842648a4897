"""Document frequencies of words in a changing index, added up over its shards."""
