"""The names of logs of writes. Each log counts its own writes. Pure."""


def same_log(one: str, other: str) -> bool:
    """Whether two names may be of one log. An empty name may be of any: a shard that was never
    written to has no log, and a node of an earlier version does not name it.
    """
    return not one or not other or one == other
