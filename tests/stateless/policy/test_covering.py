"""Which node each shard is retrieved from."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.stateless.policy.covering import Choices, cover

nodes = st.sampled_from("abcdef")
choices = st.dictionaries(
    st.sets(nodes, min_size=1, max_size=4).map(lambda own: tuple(sorted(own))),
    st.integers(1, 5),
    max_size=8,
).map(
    lambda sizes: {
        own: [100 * number + n for n in range(size)]
        for number, (own, size) in enumerate(sizes.items())
    }
)
costs = st.fixed_dictionaries({node: st.floats(0.1, 10) for node in "abcdef"})


def calls(choices: Choices, **cost: float) -> dict[str, list[int]]:
    found = cover(choices, lambda address: cost.get(address, 1.0))
    return {address: sorted(shards) for address, shards in found.items()}


@given(choices, costs)
def test_each_shard_is_asked_once_of_a_node_that_may_serve_it(
    choices: dict[tuple[str, ...], list[int]], costs: dict[str, float]
) -> None:
    found = cover(choices, costs.__getitem__)
    asked = sorted(shard for shards in found.values() for shard in shards)
    assert asked == sorted(shard for shards in choices.values() for shard in shards)
    for address, shards in found.items():
        assert shards
        may = {shard for own, some in choices.items() if address in own for shard in some}
        assert set(shards) <= may


@given(choices)
def test_no_call_is_made_that_another_call_makes_unnecessary_among_equal_nodes(
    choices: dict[tuple[str, ...], list[int]],
) -> None:
    """There are at most as many calls as kinds of shards: each call takes a kind at least."""
    assert len(cover(choices, lambda _: 1.0)) <= len(choices)


def test_of_nodes_with_the_same_shards_the_cheaper_one_is_called() -> None:
    assert calls({("a", "b"): [0, 1, 2]}, a=2.0, b=1.0) == {"b": [0, 1, 2]}


def test_a_node_that_has_more_of_the_shards_saves_a_call() -> None:
    chain: Choices = {("a", "b"): [0, 1], ("b", "c"): [2, 3]}
    assert calls(chain) == {"b": [0, 1, 2, 3]}


def test_a_busy_node_is_not_called_although_it_would_save_a_call() -> None:
    chain: Choices = {("a", "b"): [0, 1], ("b", "c"): [2, 3]}
    assert calls(chain, b=3.0) == {"a": [0, 1], "c": [2, 3]}


def test_a_node_that_must_be_called_serves_what_else_it_has() -> None:
    found = calls({("a",): [0], ("a", "b"): [1], ("b", "c"): [2]}, a=1.5)
    assert found["a"] == [0, 1]
    assert len(found) == 2


def test_without_shards_no_node_is_called() -> None:
    assert calls({}) == {}
