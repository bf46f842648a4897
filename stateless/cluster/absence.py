"""Explains by the errors of nodes why a shard has no replica. Pure."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from winnow.errors import NotLoadedError, UnavailableError, WinnowError
from winnow.stateless.cluster.membership import ClusterView
from winnow.stateless.cluster.node import Node


def absence_errors(
    shards: Collection[int], nodes: Collection[Node], view: ClusterView
) -> dict[int, WinnowError]:
    """Returns the error of each of `shards`, which have no replica.

    The error names the failed nodes of the shard. A failed node whose shards are unknown is named
    only if exactly one shard is missing, because it might belong to any missing shard.
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


def not_loaded_error(
    shard: int, nodes: Collection[Node], view: ClusterView
) -> NotLoadedError | None:
    """Returns the error of a shard that has no replica, and that no node can load.

    None if a node may have it soon: a failed node with unknown shards, or one that is loading it.
    """
    if view.replicas.get(shard):
        return None
    errors = [error for node in nodes for own, error in node.errors() if own in (shard, None)]
    if not errors or not all(isinstance(error, NotLoadedError) for error in errors):
        return None
    return NotLoadedError(f"it is not loaded: {'; '.join(map(str, errors))}").with_public(
        "its nodes could not load it"
    )


def _absence_error(
    shard: int, errors: Sequence[WinnowError], refusals: Sequence[str]
) -> WinnowError:
    reasons = "; ".join([*map(str, errors), *refusals]) or "no node was found for it"
    if any(isinstance(error, NotLoadedError) for error in errors):
        return NotLoadedError(f"shard {shard} is not loaded: {reasons}")
    return UnavailableError(f"shard {shard} has no replica: {reasons}")


def reasons_of_absence(nodes: Collection[Node], view: ClusterView) -> list[str]:
    """Returns why replicas are missing: the errors of nodes, then the reasons of refusals."""
    errors = {
        str(error): None
        for node in nodes
        for shard, error in node.errors()
        if (node.address, shard) not in view.refused
    }
    return [*errors, *(f"{each.address}: {reason}" for each, reason in view.refused.items())]
