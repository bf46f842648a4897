"""Which node takes the writes of a shard. Pure.

A write has to reach every replica of a shard, or they would answer differently for ever. Replicas
that follow one log all read it there, so any of them may take it.
"""

from collections.abc import Mapping, Sequence

from winnow.errors import NotWritableError, UnavailableError
from winnow.journal.journal import JOURNAL

BEGINS = JOURNAL
"""The log of a node that follows a journal, and has not begun to."""


def target(
    shard: int,
    used: Sequence[str],
    logs: Mapping[str, str],
    tried: Sequence[str] = (),
    preferred: str = "",
) -> str:
    """The address that the writes of a shard go to.

    Args:
        shard: its number.
        used: the addresses that questions go to.
        logs: the logs that nodes with this shard follow, by address, or `BEGINS`; also of those
            that are left out now. They may be used later, and would lack what was written.
        tried: the addresses that have failed; one that was tried less often is taken first.
        preferred: the address that took the last writes.

    Raises:
        UnavailableError: no node serves it now, or none has begun to follow its journal.
        NotWritableError: its replicas follow no journal together. A log of a node's own that
            several nodes have was copied, and each would go on with its copy.

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
