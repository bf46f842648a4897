"""Numbers of things, as people write them."""


def many(count: int, noun: str) -> str:
    """A number of things: 1 shard, 2 shards, 1,000 shards."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def are(count: int, noun: str) -> str:
    """The beginning of a sentence: 1 shard is, 2 shards are."""
    return f"{many(count, noun)} {'is' if count == 1 else 'are'}"


def were(count: int, noun: str) -> str:
    """The same of what is past: 1 shard was, 2 shards were."""
    return f"{many(count, noun)} {'was' if count == 1 else 'were'}"
