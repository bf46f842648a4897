"""The shards of one index, found and checked before the first question.

Knows what makes shards consistent; how they are reached is a `Searcher`'s business.
"""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from winnow.deadline import Deadline
from winnow.domain.shard import ShardInfo
from winnow.errors import IdentityError, WinnowError
from winnow.searcher import Searcher

_log = structlog.get_logger("stateless.cluster")
_ASK_SECONDS = 2.0
_AGAIN_SECONDS = 0.25


class Cluster:
    """Searchers by shard number, with what each said of itself when the cluster was formed."""

    def __init__(self, searchers: Mapping[int, Searcher], infos: Mapping[int, ShardInfo]) -> None:
        self.searchers = dict(searchers)
        self.infos = dict(infos)


async def form(searchers: Sequence[Searcher], fingerprint: str) -> Cluster:
    """Asks every searcher what it is until all have replied and form one whole index.

    Waits for ever for nodes that are starting or wrong, and logs why.
    """
    said = ""
    while True:
        infos = await asyncio.gather(*(_ask(searcher) for searcher in searchers))
        known = [info for info in infos if isinstance(info, ShardInfo)]
        reason = "; ".join(info for info in infos if isinstance(info, str))
        if not reason:
            try:
                check(known, fingerprint)
            except IdentityError as error:
                reason = str(error)
            else:
                return _cluster(searchers, known)
        if reason != said:
            _log.warning("waiting for shards", reason=reason)
            said = reason
        await asyncio.sleep(_AGAIN_SECONDS)


def check(infos: Sequence[ShardInfo], fingerprint: str) -> None:
    """Whether shards form one index that this front node can serve.

    Raises:
        IdentityError: naming the first thing that does not fit.

    """
    first = infos[0]
    for info in infos:
        name = f"shard {info.shard} of {info.shards}"
        if info.bundle_fingerprint != fingerprint:
            raise IdentityError(
                f"{name} serves bundle {info.bundle_name} ({info.bundle_fingerprint}), this front "
                f"node has {fingerprint}: start both with the same bundle"
            )
        if info.index_id != first.index_id or info.dimension != first.dimension:
            raise IdentityError(
                f"{name} is of index {info.index_id}, others are of {first.index_id}: "
                "list the shards of one index"
            )
    numbers = sorted(info.shard for info in infos)
    if numbers != list(range(first.shards)):
        raise IdentityError(
            f"the index has {first.shards} shards, the nodes serve {numbers}: list each shard once"
        )


def _cluster(searchers: Sequence[Searcher], infos: Sequence[ShardInfo]) -> Cluster:
    pairs = list(zip(searchers, infos, strict=True))
    return Cluster(
        {info.shard: searcher for searcher, info in pairs}, {info.shard: info for info in infos}
    )


async def _ask(searcher: Searcher) -> ShardInfo | str:
    try:
        return await searcher.info(Deadline.after(_ASK_SECONDS))
    except WinnowError as error:
        return str(error)
