"""Explains why a shard has no replica, by the errors of the nodes. Pure."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from winnow.errors import NotLoadedError, UnavailableError, WinnowError
from winnow.stateless.cluster.membership import ClusterView
from winnow.stateless.cluster.node import Node


def absence_errors(
    shards: Collection[int], nodes: Collection[Node], view: ClusterView
) -> dict[int, WinnowError]:
    """The error of each shard that has no replica.

    The error names the failed nodes of the shard. A node whose shard is unknown is listed only if
    exactly one shard is missing; else it may belong to any of them.
    """
    if not shards:
        return {}
    errors: defaultdict[int | None, list[WinnowError]] = defaultdict(list)
    refusals: defaultdict[int | None, list[str]] = defaultdict(list)
    for node in nodes:
        for shard, error in node.errors():
            if (node.address, shard) not in view.refused:
                errors[shard].append(error)
    for replica, reason in view.refused.items():
        refusals[replica.shard].append(f"{replica.address}: {reason}")
    of_unknown_shard = errors[None] if len(view.missing()) == 1 else []
    return {
        shard: _absence_error(shard, errors[shard] or of_unknown_shard, refusals[shard])
        for shard in shards
    }


def _absence_error(
    shard: int, errors: Sequence[WinnowError], refusals: Sequence[str]
) -> WinnowError:
    reasons = "; ".join([*map(str, errors), *refusals]) or "no node was found for it"
    if any(isinstance(error, NotLoadedError) for error in errors):
        return NotLoadedError(f"shard {shard} is not loaded: {reasons}")
    return UnavailableError(f"shard {shard} has no replica: {reasons}")


def reasons_of_absence(nodes: Collection[Node], view: ClusterView) -> list[str]:
    """The reasons why replicas are left out: errors of nodes, then reasons of refusals."""
    errors = {
        str(error): None
        for node in nodes
        for shard, error in node.errors()
        if (node.address, shard) not in view.refused
    }
    return [*errors, *(f"{each.address}: {reason}" for each, reason in view.refused.items())]
