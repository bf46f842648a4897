"""Chooses the node that takes the writes of a shard. Pure.

A write must reach every replica of a shard, or replicas would give different answers. Replicas that
follow one journal read every write from this journal, so any of these replicas may take a write.
"""

from collections.abc import Collection, Mapping, Sequence

from winnow.errors import NotWritableError, UnavailableError
from winnow.journal.journal import JOURNAL

UNREAD_JOURNAL = JOURNAL
"""Log id of a node that follows a journal, but has not read from the journal yet."""


def choose_target(
    shard: int,
    replicas: Sequence[str],
    logs: Mapping[str, str],
    tried: Sequence[str] = (),
    preferred: str = "",
    *,
    moving: Collection[str] = (),
) -> str:
    """Returns the address of the node that takes the writes of a shard.

    Args:
        shard: number of the shard.
        replicas: addresses of the replicas that get questions.
        logs: log id of each node with this shard, by address, or `UNREAD_JOURNAL`. Nodes that get
            no questions now are included: if they got questions later, they would lack the writes.
        tried: address of each failed attempt. An address with fewer failed attempts is preferred.
        preferred: address that took the last writes.
        moving: addresses of nodes with a copy of a moving shard that do not take its writes.

    Raises:
        UnavailableError: no node serves the shard, no replica has begun to follow the journal, or
            the shard is being handed over to another node.
        NotWritableError: the shard has several replicas that do not follow one journal. Each of
            them would continue its own copy of the log.

    """
    if not replicas:
        raise UnavailableError(f"no node serves shard {shard} now")
    replicas = [each for each in replicas if each not in moving]
    if not replicas:
        raise UnavailableError(f"shard {shard} is moving to another node: try again")
    log_of = {each: logs.get(each, "") for each in {*replicas, *logs} - set(moving)}
    ready = [each for each in replicas if log_of[each] != UNREAD_JOURNAL]
    if len(log_of) > 1:
        _check_same_journal(shard, log_of)
        if not ready:
            problem = f"no replica of shard {shard} has begun to follow its journal"
            addresses = f"({', '.join(sorted(log_of))}): is the journal running?"
            raise UnavailableError(f"{problem} {addresses}").with_public(f"{problem}: try again")
    return min(ready or replicas, key=lambda each: (tried.count(each), each != preferred, each))


def _check_same_journal(shard: int, log_of: Mapping[str, str]) -> None:
    log_ids = set(log_of.values()) - {UNREAD_JOURNAL}
    if len(log_ids) > 1 or not all(log_id.startswith(JOURNAL) for log_id in log_ids):
        replicas = f"shard {shard} has {len(log_of)} replicas"
        problem = (
            "share no log, so a write would reach only one of them: serve each shard by one "
            "node, or make the replicas follow a journal (--journal)"
        )
        error = NotWritableError(f"{replicas} ({', '.join(sorted(log_of))}) that {problem}")
        raise error.with_public(f"{replicas} that {problem}")
