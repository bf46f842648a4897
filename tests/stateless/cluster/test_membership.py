"""Which nodes are served together, as tables."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from fakes import shard_info
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.partition import halves_of
from winnow.domain.shard import ShardInfo
from winnow.stateless.cluster.membership import ClusterView, FrontEncoding, IndexIdentity, form_view
from winnow.stateless.cluster.node import ReplicaAt

OURS = FrontEncoding("print", 384, "bundle")
NOTHING = ClusterView()


def shard(number: int, shards: int = 3, index: str = "index", generation: str = "g") -> ShardInfo:
    return shard_info(
        number,
        shards,
        index_id=index,
        passages=10 * (number + 1),
        dimension=384,
        bundle_fingerprint="print",
        generation=f"{generation}{number}",
        index_passages=60,
    )


def nodes(**infos: ShardInfo) -> dict[str, ShardInfo]:
    return infos


WHOLE = nodes(a=shard(0), b=shard(1), c=shard(2))


def formed(present: dict[str, ShardInfo], served: ClusterView) -> ClusterView:
    """The view of nodes that serve one shard each."""
    return form_view({ReplicaAt(a, info.shard): info for a, info in present.items()}, OURS, served)


def served(present: dict[str, ShardInfo], *before: dict[str, ShardInfo]) -> ClusterView:
    view = NOTHING
    for each in (*before, present):
        view = formed(each, view)
    return view


def test_a_whole_index_in_any_order_is_served() -> None:
    view = served(nodes(x=shard(2), y=shard(0), z=shard(1)))
    assert view.replicas == {0: ("y",), 1: ("z",), 2: ("x",)}
    assert view.is_whole
    assert not view.refused


def test_without_nodes_no_index_is_served() -> None:
    assert served({}) == NOTHING
    assert not NOTHING.is_whole


def test_a_shard_may_have_any_number_of_replicas() -> None:
    view = served({**WHOLE, "d": shard(1), "e": shard(1)})
    assert view.replicas == {0: ("a",), 1: ("b", "d", "e"), 2: ("c",)}


@pytest.mark.parametrize(
    ("stranger", "reason"),
    [
        (replace(shard(2), bundle_fingerprint="other"), "front has bundle (print): start"),
        (replace(shard(2), dimension=768), "vectors of 768 values"),
        (shard(10**6, 3), "shard 1000000 of 3 is an invalid shard number"),
        (shard(3, 2**32 - 1), "an index has at most 4,096"),
        (shard(2, index="other"), "belongs to index other, but this front serves index index"),
        (shard(2, shards=4), "index index, but this front serves index index of 3 shards"),
        (shard(2, generation="h"), "generation h2, but other replicas serve generation g2"),
        (shard(2, generation=""), "generation 2, but other replicas serve generation g2"),
    ],
)
def test_a_stranger_is_refused_by_name_and_the_others_serve_on(
    stranger: ShardInfo, reason: str
) -> None:
    view = served({**WHOLE, "stranger": stranger}, WHOLE)
    assert view.is_whole
    assert view.replicas == served(WHOLE).replicas
    assert list(view.refused) == [ReplicaAt("stranger", stranger.shard)]
    assert reason in view.refused[ReplicaAt("stranger", stranger.shard)]


def test_a_dead_shard_has_no_replica_and_is_not_forgotten() -> None:
    view = served(nodes(a=shard(0), c=shard(2)), WHOLE)
    assert view.replicas == {0: ("a",), 1: (), 2: ("c",)}
    assert view.shard_infos[1].passages == 20
    assert not view.is_whole
    assert served({}, WHOLE).identity == IndexIdentity("index", 3, 384)


def test_at_first_the_index_of_which_most_is_there_is_served() -> None:
    small = nodes(x=shard(0, 2, "small"))
    assert served({**small, "a": shard(0), "b": shard(1)}).identity == IndexIdentity(
        "index", 3, 384
    )
    assert served({**small, "a": shard(0)}).identity == IndexIdentity("index", 3, 384)  # by name
    whole = nodes(x=shard(0, 2, "small"), y=shard(1, 2, "small"))
    assert served({**whole, "a": shard(0), "b": shard(1)}).identity == IndexIdentity(
        "small", 2, 384
    )


def test_another_index_takes_over_only_when_it_is_whole_and_the_served_one_is_not() -> None:
    green = nodes(x=shard(0, 2, "green"), y=shard(1, 2, "green"))
    broken = nodes(a=shard(0), b=shard(1))
    old, new = IndexIdentity("index", 3, 384), IndexIdentity("green", 2, 384)
    assert served({**WHOLE, **green}, WHOLE).identity == old
    assert served({**broken, "x": green["x"]}, WHOLE).identity == old
    view = served({**broken, **green}, WHOLE)
    assert view.identity == new
    assert view.replicas == {0: ("x",), 1: ("y",)}
    assert set(view.refused) == {ReplicaAt("a", 0), ReplicaAt("b", 1)}
    assert set(view.shard_infos) == {0, 1}


def test_of_several_generations_the_one_that_most_hold_is_served_and_then_stays() -> None:
    three = nodes(a=shard(0, 1), b=shard(0, 1, generation="h"), c=shard(0, 1, generation="h"))
    first = served(three)
    assert first.replicas == {0: ("b", "c")}
    assert ReplicaAt("a", 0) in first.refused
    more = {**three, "d": shard(0, 1), "e": shard(0, 1), "c": shard(0, 1)}
    assert served(more, three).replicas == {0: ("b",)}
    gone = {name: info for name, info in more.items() if name != "b"}
    assert served(gone, three).replicas == {0: ("a", "c", "d", "e")}


def test_generations_of_which_there_are_equally_many_are_chosen_alike_everywhere() -> None:
    assert served(nodes(a=shard(0, 1, generation="h"), b=shard(0, 1))).replicas == {0: ("b",)}


def test_replicas_of_one_log_belong_together_at_any_state_of_merging() -> None:
    held = {
        name: replace(shard(0, 1, generation=name), log_id="log", sequence=sequence, passages=more)
        for name, sequence, more in (("a", 7, 12), ("b", 9, 13), ("c", 0, 10))
    }
    view = served(held)
    assert view.replicas == {0: ("a", "b", "c")}
    assert (view.shard_infos[0].sequence, view.shard_infos[0].passages) == (9, 13), (
        "of the most advanced one"
    )


@pytest.mark.parametrize("log_id", ["other", ""])
def test_one_that_does_not_follow_the_log_is_refused_by_name(log_id: str) -> None:
    own = replace(shard(0, 1), log_id="log")
    view = served({"a": own, "b": replace(own, log_id=log_id)}, {"a": own})
    assert view.replicas == {0: ("a",)}
    said = f"log {log_id}" if log_id else "generation g0"
    assert view.refused[ReplicaAt("b", 0)].startswith(
        f"shard 0 of 1 has {said}, but other replicas serve log log"
    )


def test_a_shard_never_seen_of_an_index_that_was_written_to_is_like_those_that_were() -> None:
    """What the index had when it was built says nothing of it any more."""
    grown = {
        name: replace(info, passages=1_000, sequence=990)
        for name, info in nodes(a=shard(0), b=shard(1)).items()
    }
    expected = served(grown).expected()
    assert expected is not None
    assert {n: info.passages for n, info in expected.items()} == {0: 1_000, 1: 1_000, 2: 1_000}
    assert expected[2].sequence == 0
    emptied = {name: replace(info, passages=0) for name, info in grown.items()}
    none_left = served(emptied).expected()
    assert none_left is not None
    assert none_left[2].passages == 0


def test_a_shard_never_seen_counts_with_the_remaining_passages() -> None:
    expected = served(nodes(b=shard(1))).expected()
    assert expected is not None
    assert {n: info.passages for n, info in expected.items()} == {0: 20, 1: 20, 2: 20}
    known = served(nodes(b=shard(1)), WHOLE).expected()
    assert known is not None
    assert {n: info.passages for n, info in known.items()} == {0: 10, 1: 20, 2: 30}


def test_without_the_size_of_the_index_nothing_is_expected_before_all_were_seen() -> None:
    old = {a: replace(info, index_passages=0) for a, info in WHOLE.items()}
    assert served({"a": old["a"]}).expected() is None
    assert served(old).expected() is not None
    assert NOTHING.expected() is None


infos = st.builds(
    ShardInfo,
    shard=st.integers(0, 3),
    shards=st.integers(1, 3),
    index_id=st.sampled_from(["i", "j"]),
    passages=st.integers(0, 9),
    dimension=st.sampled_from([384, 768]),
    bundle_name=st.just("bundle"),
    bundle_fingerprint=st.sampled_from(["print", "print", "other"]),
    generation=st.sampled_from(["g", "h"]),
    index_passages=st.just(20),
    sequence=st.integers(0, 3),
    log_id=st.sampled_from(["", "", "log", "other"]),
)
crowds = st.dictionaries(st.sampled_from("abcdefgh"), infos, max_size=8)


@given(st.lists(crowds, max_size=4))
def test_in_any_history_of_nodes_no_rows_are_mixed_and_no_node_is_ignored(
    crowds: Iterable[dict[str, ShardInfo]],
) -> None:
    view = NOTHING
    for present in crowds:
        before, view = view, formed(present, view)
        asked = {address for own in view.replicas.values() for address in own}
        refused = {replica.address for replica in (*view.refused, *view.unused)}
        assert asked | refused == present.keys()
        assert not asked & refused
        for number, own in view.replicas.items():
            assert {present[a].shard for a in own} <= {number}
            assert len({present[a].replica_identity for a in own}) <= 1
            assert all(present[a].sequence <= view.shard_infos[number].sequence for a in own)
        assert len({IndexIdentity.of(present[a]) for a in asked}) <= 1
        assert {present[a].bundle_fingerprint for a in asked} <= {"print"}
        if before.identity != view.identity and before.identity is not None:
            assert view.is_whole
        assert formed(present, view) == view


FIRST, SECOND = halves_of(1, 3)
SPLIT = nodes(a=shard(0), x=shard(FIRST), y=shard(SECOND), c=shard(2))


def test_both_halves_of_a_shard_are_used_once_they_are_there() -> None:
    both = {**WHOLE, "x": shard(FIRST), "y": shard(SECOND)}
    view = served(both, WHOLE)
    assert view.replicas == {0: ("a",), 2: ("c",), FIRST: ("x",), SECOND: ("y",)}
    assert view.is_whole
    assert not view.refused
    assert list(view.unused) == [ReplicaAt("b", 1)]


@pytest.mark.parametrize("half", [FIRST, SECOND])
def test_one_half_is_not_used_beside_its_shard(half: int) -> None:
    view = served({**WHOLE, "x": shard(half)}, WHOLE)
    assert view.replicas == served(WHOLE).replicas
    assert list(view.unused) == [ReplicaAt("x", half)]


def test_a_front_does_not_go_back_to_a_shard_whose_halves_it_has_used() -> None:
    view = served({**WHOLE, "x": shard(FIRST)}, SPLIT)
    assert view.missing() == [SECOND]
    assert list(view.unused) == [ReplicaAt("b", 1)]


def test_a_new_front_prefers_one_half_to_a_shard_that_takes_no_writes_any_more() -> None:
    handed_over = replace(shard(1), writes_elsewhere=True)
    view = served({**WHOLE, "b": handed_over, "x": shard(FIRST)})
    assert view.missing() == [SECOND]
    assert served({**WHOLE, "b": handed_over}).is_whole


def test_halves_of_halves_are_used_once_all_are_there() -> None:
    third, fourth = halves_of(FIRST, 3)
    view = served({**SPLIT, "p": shard(third), "q": shard(fourth)}, SPLIT)
    assert set(view.replicas) == {0, 2, SECOND, third, fourth}
    assert list(view.unused) == [ReplicaAt("x", FIRST)]
