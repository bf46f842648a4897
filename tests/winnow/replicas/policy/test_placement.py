"""Which server a head belongs to."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from winnow.replicas.policy.placement import Placement

HEADS = [f"tenant-{number}.intent" for number in range(1_000)]
names = st.sets(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=8)


def homes(placement: Placement, heads: list[str]) -> dict[str, str]:
    return {head: placement.order(head)[0] for head in heads}


@given(names, names, st.data())
def test_removing_a_server_moves_only_its_heads_each_to_its_second_choice(
    servers: set[str], heads: set[str], data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(sorted(servers)))
    before, after = Placement(servers), Placement(servers - {gone})
    for head in heads:
        assert after.order(head) == [each for each in before.order(head) if each != gone]


@given(names, names)
def test_every_server_is_some_choice_whatever_the_order_they_are_named_in(
    servers: set[str], heads: set[str]
) -> None:
    forth, back = Placement(sorted(servers)), Placement(sorted(servers, reverse=True))
    for head in heads:
        assert set(forth.order(head)) == servers
        assert forth.order(head) == back.order(head)


def test_a_thousand_heads_are_spread_evenly() -> None:
    """Binomial: of 1 000 heads each of three servers gets 333, give or take 15 (one sigma)."""
    for servers in range(2, 9):
        placed = Counter(
            homes(Placement([f"10.0.0.{n}:9200" for n in range(servers)]), HEADS).values()
        )
        fair = len(HEADS) / servers
        assert len(placed) == servers
        assert all(0.75 * fair < count < 1.25 * fair for count in placed.values()), placed


def test_the_heads_of_a_server_that_leaves_spread_over_all_others() -> None:
    servers = [f"10.0.0.{n}:9200" for n in range(4)]
    before, after = homes(Placement(servers), HEADS), homes(Placement(servers[1:]), HEADS)
    moved = Counter(after[head] for head in HEADS if before[head] == servers[0])
    assert set(moved) == set(servers[1:])
    assert min(moved.values()) > 0.6 * max(moved.values())


def test_where_a_head_belongs_never_changes() -> None:
    """Servers of another version must agree; these were computed once."""
    placement = Placement(["a:1", "b:1", "c:1"])
    found = [placement.order(head)[0] for head in ("intent", "entities", "x", "y")]
    assert found == ["a:1", "a:1", "c:1", "b:1"]


def test_without_servers_there_is_no_choice() -> None:
    assert Placement(()).order("intent") == []
