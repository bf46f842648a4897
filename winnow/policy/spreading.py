"""Spreads shards evenly over nodes, and moves as few shards as possible. Pure."""

from collections.abc import Collection, Mapping

from winnow.replicas.policy.placement import Placement

_Ranks = Mapping[int, Mapping[str, int]]
"""The rank of each node for each shard, from 0, the best."""


def spread(
    shards: Collection[int],
    nodes: Collection[str],
    replicas: int = 1,
    present: Mapping[int, Collection[str]] | None = None,
) -> dict[int, tuple[str, ...]]:
    """Returns the names of the nodes of each shard.

    The numbers of shards of any two nodes differ by at most one. A shard stays on its node unless
    the node has too many shards. Rendezvous hashing chooses which of these shards move. So the
    result depends only on the arguments, and a new node receives only its share of the shards.

    Args:
        shards: the distinct numbers of the shards, at least 1.
        nodes: distinct names of the nodes, at least 1.
        replicas: number of nodes of each shard; reduced to the number of nodes if larger.
        present: names of the nodes that hold each shard now; unknown nodes are ignored.

    """
    replicas = min(replicas, len(nodes))
    placement = Placement(nodes)
    ranks = {
        shard: {name: rank for rank, name in enumerate(placement.order(str(shard)))}
        for shard in shards
    }
    holders = {
        shard: _nodes_to_keep((present or {}).get(shard, ()), own, replicas)
        for shard, own in ranks.items()
    }
    loads = {name: sum(name in names for names in holders.values()) for name in sorted(nodes)}
    for shard, names in holders.items():
        own = ranks[shard]
        while len(names) < replicas:
            name = min(own.keys() - names, key=lambda each: (loads[each], own[each]))
            names.add(name)
            loads[name] += 1
    _even_out(holders, loads, ranks)
    return {shard: tuple(sorted(names)) for shard, names in holders.items()}


def _nodes_to_keep(present: Collection[str], ranks: Mapping[str, int], replicas: int) -> set[str]:
    """Returns the nodes that keep a shard: at most `replicas`, the best ranks first."""
    return set(sorted(ranks.keys() & set(present), key=ranks.__getitem__)[:replicas])


def _even_out(holders: Mapping[int, set[str]], loads: dict[str, int], ranks: _Ranks) -> None:
    """Moves shards from nodes with many to nodes with few, until loads differ by at most one."""
    while move := _next_move(holders, loads, ranks):
        shard, source, target = move
        holders[shard].remove(source)
        holders[shard].add(target)
        loads[source] -= 1
        loads[target] += 1


def _next_move(
    holders: Mapping[int, set[str]], loads: Mapping[str, int], ranks: _Ranks
) -> tuple[int, str, str] | None:
    """Returns a shard, the node that it leaves and the node that receives it; None if
    the shards are spread evenly.
    """
    by_load = sorted(loads, key=lambda name: (loads[name], name))
    for target in by_load:
        for source in reversed(by_load):
            if loads[source] - loads[target] <= 1:
                break
            movable = [s for s, names in holders.items() if source in names and target not in names]
            if movable:
                shard = min(movable, key=lambda each: (ranks[each][target], each))
                return shard, source, target
    return None
