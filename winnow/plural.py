"""Numbers of things, as people write them."""


def many(count: int, noun: str) -> str:
    """A number of things: 1 shard, 2 shards, 1,000 shards."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
