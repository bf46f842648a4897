"""Chooses the content node for each shard of a question, so that few nodes are called.

This module knows addresses, shards and costs. It does not know why a node may serve a shard. The
problem is a weighted set cover, which is solved greedily (Chvátal, "A Greedy Heuristic for the
Set-Covering Problem", 1979): each step adds the node with the lowest cost per remaining shard.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

Choices = Mapping[tuple[str, ...], Sequence[int]]
"""Maps the addresses of the nodes that may serve some shards, at least one, to these shards."""


def cover(choices: Choices, cost: Callable[[str], float]) -> dict[str, list[int]]:
    """Assigns each shard to one of its nodes; returns the shards by the address of their node.

    Shards with a single node are assigned first. A node that is called for these also serves all
    other shards that it may serve, unless another called node costs less.

    Args:
        choices: the nodes that may serve each shard.
        cost: returns the cost of a call to an address, above 0. It is not called for an address
            that only serves shards with a single node.

    """
    assigned: dict[str, list[int]] = {}
    open_choices: dict[tuple[str, ...], Sequence[int]] = {}
    for addresses, shards in choices.items():
        if len(addresses) == 1:
            assigned.setdefault(addresses[0], []).extend(shards)
        else:
            open_choices[addresses] = shards
    costs = {address: cost(address) for addresses in open_choices for address in addresses}
    for addresses in list(open_choices):
        if called := [address for address in addresses if address in assigned]:
            assigned[min(called, key=costs.__getitem__)].extend(open_choices.pop(addresses))
    return assigned | _cover_greedily(open_choices, costs)


def _cover_greedily(choices: Choices, costs: Mapping[str, float]) -> dict[str, list[int]]:
    assigned: dict[str, list[int]] = {}
    left = dict(choices)
    choices_of: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    gain: defaultdict[str, int] = defaultdict(int)
    """Number of remaining shards that each address may serve."""
    for addresses, shards in choices.items():
        for address in addresses:
            choices_of[address].append(addresses)
            gain[address] += len(shards)
    # prices only rise, so the lowest entry is current or must be computed again
    prices = [(costs[address] / gain[address], address) for address in gain]
    heapq.heapify(prices)
    while left:
        price, address = heapq.heappop(prices)
        if gain[address] and (now := costs[address] / gain[address]) > price:
            heapq.heappush(prices, (now, address))
            continue
        for addresses in choices_of[address]:
            if (own := left.pop(addresses, None)) is not None:
                assigned.setdefault(address, []).extend(own)
                for each in addresses:
                    gain[each] -= len(own)
    return assigned
