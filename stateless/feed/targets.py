"""Which node takes the writes of a shard. Pure.

A write has to reach every replica of a shard, or replicas would give different answers. Replicas
that follow one journal all read the write there, so any of them may take it.
"""

from collections.abc import Mapping, Sequence

from winnow.errors import NotWritableError, UnavailableError
from winnow.journal.journal import JOURNAL

BEGINS = JOURNAL
"""The log of a node that is going to follow a journal, and has not read it yet."""


def target(
    shard: int,
    used: Sequence[str],
    logs: Mapping[str, str],
    tried: Sequence[str] = (),
    preferred: str = "",
) -> str:
    """The address of the node that takes the writes of a shard.

    Args:
        shard: its number.
        used: the addresses that questions go to.
        logs: by address, the log that a node with this shard follows, or `BEGINS`. Nodes that are
            left out now count: they may be used later, and would lack the writes.
        tried: the addresses that have failed; the one that was tried least often is taken.
        preferred: the address that took the last writes.

    Raises:
        UnavailableError: no node serves it now, or none has begun to follow its journal.
        NotWritableError: its replicas do not follow one journal. If several nodes have the same
            log without a journal, it was copied, and each would continue its copy.

    """
    if not used:
        raise UnavailableError(f"no node serves shard {shard} now")
    followed = {address: logs.get(address, "") for address in {*used, *logs}}
    ready = [each for each in used if followed[each] != BEGINS]
    if len(followed) > 1:
        _expect_one_journal(shard, followed)
        if not ready:
            what = f"no replica of shard {shard} has begun to follow its journal"
            where = f"({', '.join(sorted(followed))}): is the journal running?"
            raise UnavailableError(f"{what} {where}").with_public(f"{what}: try again")
    return min(ready or used, key=lambda each: (tried.count(each), each != preferred, each))


def _expect_one_journal(shard: int, followed: Mapping[str, str]) -> None:
    names = set(followed.values()) - {BEGINS}
    if len(names) > 1 or not all(name.startswith(JOURNAL) for name in names):
        replicas = f"shard {shard} has {len(followed)} replicas"
        what = (
            "share no log, so a write would reach only one of them: serve one node for each shard, "
            "or have them follow a journal (--journal)"
        )
        named = NotWritableError(f"{replicas} ({', '.join(sorted(followed))}) that {what}")
        raise named.with_public(f"{replicas} that {what}")
