"""Why a shard has no replica, by the errors of the nodes. Pure."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from winnow.errors import NotLoadedError, UnavailableError, WinnowError
from winnow.stateless.cluster.membership import ClusterView
from winnow.stateless.cluster.node import Node


def absences(
    shards: Collection[int], nodes: Collection[Node], view: ClusterView
) -> dict[int, WinnowError]:
    """The error of each shard that has no replica.

    A node that never said which shard it serves is named only if no other shard is missing: if one
    is, the node may belong to either.
    """
    if not shards:
        return {}
    failing: defaultdict[int | None, list[WinnowError]] = defaultdict(list)
    refused: defaultdict[int | None, list[str]] = defaultdict(list)
    for node in nodes:
        place = node.info.shard if node.info else None
        if node.address in view.refused:
            refused[place].append(f"{node.address}: {view.refused[node.address]}")
        elif node.error is not None:
            failing[place].append(node.error)
    alone = len(view.missing()) == 1
    return {
        shard: _absence(shard, failing[shard] or (failing[None] if alone else []), refused[shard])
        for shard in shards
    }


def _absence(shard: int, errors: Sequence[WinnowError], refused: Sequence[str]) -> WinnowError:
    said = "; ".join([*map(str, errors), *refused]) or "none was found"
    if any(isinstance(error, NotLoadedError) for error in errors):
        return NotLoadedError(f"shard {shard} is not loaded: {said}")
    return UnavailableError(f"no replica of shard {shard} is there: {said}")


def reasons(nodes: Collection[Node], view: ClusterView) -> list[str]:
    """Why nodes are left out, one reason for each."""
    failing = [str(n.error) for n in nodes if n.error is not None and n.address not in view.refused]
    return [*failing, *(f"{address}: {reason}" for address, reason in view.refused.items())]
