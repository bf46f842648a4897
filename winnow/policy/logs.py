"""The names of logs of writes. Each log counts its own writes. Pure."""


def same_log(first: str, second: str) -> bool:
    """Whether two names may be of the same log.

    An empty name matches any: a shard without writes has no log, and nodes of earlier versions
    report no name.
    """
    return not first or not second or first == second
