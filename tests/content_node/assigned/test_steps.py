"""What a node opens and closes to follow an assignment."""

from dataclasses import replace

import pytest
from fakes import shard_info

from winnow.content_node.assigned.steps import HeldShard, NextSteps, next_steps, nodes_serving
from winnow.domain.assignment import Assignment
from winnow.domain.shard import NodeReport

INFO = shard_info(sequence=5)
HELD = HeldShard(INFO)


def assignment(**holders: str) -> Assignment:
    """Nodes a, b and c; `s0="b"` assigns shard 0 to b. Shards are on a by default."""
    named = {0: "a", 1: "a", **{int(shard[1:]): names for shard, names in holders.items()}}
    return Assignment(
        index_id="index",
        shards=2,
        version=1,
        nodes={name: f"{name}:9000" for name in "abc"},
        holders={shard: tuple(names) for shard, names in named.items()},
    )


def serving(**values: object) -> NodeReport:
    return NodeReport((replace(INFO, **values),))  # type: ignore[arg-type]


def test_a_node_opens_the_shards_that_it_lacks() -> None:
    assert next_steps(assignment(), "a", {0: HELD}, {}) == NextSteps(to_open=(1,))
    assert next_steps(assignment(s1="b"), "c", {}, {}) == NextSteps()


def test_a_shard_is_not_opened_again_beside_its_halves() -> None:
    """An older copy of it, from a snapshot, would take writes that the halves lack."""
    held = {shard: HeldShard(replace(INFO, shard=shard)) for shard in (1, 2, 3)}
    assert next_steps(assignment(), "a", held, {}) == NextSteps()
    assert next_steps(assignment(), "a", {1: held[1]}, {"b": serving(shard=2)}) == NextSteps()


def test_a_shard_is_closed_only_once_all_its_nodes_serve_it() -> None:
    moved = assignment(s0="bc")
    held = {0: HELD, 1: HELD}
    for reports in ({}, {"b": serving()}, {"c": serving(), "b": NodeReport()}):
        assert next_steps(moved, "a", held, reports) == NextSteps()
    assert next_steps(moved, "a", held, {"b": serving(), "c": serving()}) == NextSteps(
        to_close=(0,)
    )


@pytest.mark.parametrize(
    "other",
    [{"sequence": 4}, {"writes_elsewhere": True}, {"index_id": "another"}, {"shard": 1}],
)
def test_another_copy_does_not_count_unless_it_has_all_writes_and_takes_the_next_ones(
    other: dict[str, object],
) -> None:
    moved = assignment(s0="b")
    assert next_steps(moved, "a", {0: HELD, 1: HELD}, {"b": serving(**other)}) == NextSteps()


def test_a_copy_that_is_out_of_date_for_good_is_replaced_while_another_node_serves() -> None:
    held = {0: HeldShard(INFO, must_be_replaced=True), 1: HELD}
    assert next_steps(assignment(), "a", held, {}) == NextSteps()
    assert next_steps(assignment(), "a", held, {"c": serving()}) == NextSteps(to_close=(0,))


def test_a_parent_is_closed_although_a_half_has_come_back_and_must_be_replaced() -> None:
    """The half was handed over to another node, and is assigned to this one again. It is closed
    after its parent, and copied back.
    """
    split = replace(assignment(), holders=dict.fromkeys((1, 2, 3), ("a",)))
    held = {shard: HeldShard(replace(INFO, shard=shard)) for shard in (0, 1, 3)}
    held[2] = HeldShard(replace(INFO, shard=2), must_be_replaced=True)
    assert next_steps(split, "a", held, {}) == NextSteps()
    moved = {"b": serving(shard=2)}
    assert next_steps(split, "a", held, moved) == NextSteps(to_close=(0,))
    del held[0]
    assert next_steps(split, "a", held, moved) == NextSteps(to_close=(2,))


def test_a_copy_whose_index_is_unknown_is_kept_unless_it_is_out_of_date() -> None:
    reports = {"b": serving(sequence=0)}
    moved = assignment(s0="b")
    assert next_steps(moved, "a", {0: HeldShard(None), 1: HELD}, reports) == NextSteps()
    held = {0: HeldShard(None, must_be_replaced=True), 1: HELD}
    assert next_steps(moved, "a", held, reports) == NextSteps(to_close=(0,))


@pytest.mark.parametrize("other", [{"index_id": "another"}, {"shards": 9}])
def test_shards_of_another_index_or_numbering_are_kept(other: dict[str, object]) -> None:
    """Their numbers mean other passages."""
    own = HeldShard(replace(INFO, **other))  # type: ignore[arg-type]
    held = {0: own, 1: HELD, 8: own}
    assert next_steps(assignment(s0="b"), "a", held, {"b": serving()}) == NextSteps()


def test_shards_are_copied_from_nodes_that_take_their_writes() -> None:
    reports = {"c": serving(), "b": serving(writes_elsewhere=True), "a": serving(sequence=0)}
    assert nodes_serving("index", 0, None, reports) == ["a", "c"]
