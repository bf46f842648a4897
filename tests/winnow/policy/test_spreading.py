"""Shards are spread evenly over nodes, and as few as possible move."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from winnow.policy.spreading import spread

SHARDS = st.integers(1, 40)
NODES = st.sets(st.sampled_from([f"node-{number}" for number in range(9)]), min_size=1, max_size=8)
REPLICAS = st.integers(1, 3)


def loads(holders: dict[int, tuple[str, ...]], nodes: set[str]) -> Counter[str]:
    counts = Counter(dict.fromkeys(nodes, 0))
    counts.update(name for names in holders.values() for name in names)
    return counts


def moved(before: dict[int, tuple[str, ...]], after: dict[int, tuple[str, ...]]) -> int:
    return sum(len(set(after[shard]) - set(before[shard])) for shard in after)


@given(SHARDS, NODES, NODES, REPLICAS)
def test_every_shard_has_distinct_nodes_and_no_node_has_two_more_than_another(
    shards: int, before: set[str], nodes: set[str], replicas: int
) -> None:
    present = spread(range(shards), before, replicas)
    holders = spread(range(shards), nodes, replicas, present)
    assert list(holders) == list(range(shards))
    for names in holders.values():
        assert len(set(names)) == len(names) == min(replicas, len(nodes))
        assert set(names) <= nodes
    counts = loads(holders, nodes).values()
    assert max(counts) - min(counts) <= 1


@given(SHARDS, NODES, REPLICAS)
def test_nothing_moves_without_a_change(shards: int, nodes: set[str], replicas: int) -> None:
    present = spread(range(shards), nodes, replicas)
    assert spread(range(shards), nodes, replicas, present) == present
    assert spread(range(shards), sorted(nodes, reverse=True), replicas) == present


@given(SHARDS, NODES)
def test_a_new_node_gets_its_share_and_nothing_else_moves(shards: int, nodes: set[str]) -> None:
    before = spread(range(shards), nodes)
    after = spread(range(shards), {*nodes, "new"}, present=before)
    assert moved(before, after) == loads(after, {*nodes, "new"})["new"]


@given(SHARDS, NODES)
def test_only_the_shards_of_a_removed_node_move(shards: int, nodes: set[str]) -> None:
    before = spread(range(shards), {*nodes, "gone"})
    after = spread(range(shards), nodes, present=before)
    assert moved(before, after) == loads(before, nodes)["gone"]
