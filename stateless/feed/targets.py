"""Which node takes the writes of a shard. Pure.

A write has to reach every replica of a shard, or they would answer differently for ever. Replicas
that follow one log all read it there, so any of them may take it.
"""

from collections.abc import Mapping

from winnow.domain.shard import ShardInfo
from winnow.errors import NotWritableError, UnavailableError


def target(shard: int, replicas: Mapping[str, ShardInfo | None], attempt: int = 0) -> str:
    """The address that the writes of a shard go to.

    Args:
        shard: its number.
        replicas: what the nodes that serve it said of themselves, by address.
        attempt: how many have failed: another replica is tried then.

    Raises:
        UnavailableError: no node serves it now.
        NotWritableError: its replicas share no log.

    """
    if not replicas:
        raise UnavailableError(f"no node serves shard {shard} now")
    addresses = sorted(replicas)
    if len(addresses) > 1:
        logs = {info.log_id if info else "" for info in replicas.values()}
        if len(logs) > 1 or "" in logs:
            raise NotWritableError(
                f"shard {shard} has {len(addresses)} replicas ({', '.join(addresses)}) that share "
                "no log, so a write would reach only one of them: serve one node for each shard, "
                "or give the replicas one log"
            )
    return addresses[attempt % len(addresses)]
