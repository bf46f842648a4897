"""Which node takes the writes of a shard. Pure.

A write has to reach every replica of a shard, or they would answer differently for ever. Replicas
that follow one log all read it there, so any of them may take it.
"""

from collections.abc import Mapping, Sequence

from winnow.errors import NotWritableError, UnavailableError
from winnow.journal.journal import JOURNAL


def target(shard: int, used: Sequence[str], logs: Mapping[str, str], attempt: int = 0) -> str:
    """The address that the writes of a shard go to.

    Args:
        shard: its number.
        used: the addresses that questions go to.
        logs: the logs that nodes with this shard follow, by address; also of those that are left
            out now. They may be used later, and would lack what was written.
        attempt: how many have failed: another replica is tried then.

    Raises:
        UnavailableError: no node serves it now.
        NotWritableError: its replicas follow no journal together. A log of a node's own that
            several nodes have was copied, and each would go on with its copy.

    """
    if not used:
        raise UnavailableError(f"no node serves shard {shard} now")
    followed = {address: logs.get(address, "") for address in {*used, *logs}}
    names = set(followed.values())
    if len(followed) > 1 and not (len(names) == 1 and names.pop().startswith(JOURNAL)):
        what = (
            "share no log, so a write would reach only one of them: serve one node for each shard, "
            "or have them follow a journal (--journal)"
        )
        replicas = f"shard {shard} has {len(followed)} replicas"
        named = NotWritableError(f"{replicas} ({', '.join(sorted(followed))}) that {what}")
        raise named.with_public(f"{replicas} that {what}")
    return sorted(used)[attempt % len(used)]
