"""What stays in memory: a budget that is never exceeded, and nothing that is used ever leaves."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from winnow.policy.residency import Residency

KEYS = st.sampled_from("abcdef")


def filled(budget: int, *keys: str) -> Residency:
    residency = Residency(budget)
    for key in keys:
        assert residency.take(key, 1) == []
    return residency


def test_the_least_recently_used_leaves_first() -> None:
    residency = filled(3, *"abc")
    residency.hold("a")
    residency.release("a")
    assert residency.take("d", 2) == ["b", "c"]
    assert residency.taken == 3


def test_what_is_in_use_or_pinned_stays() -> None:
    residency = filled(3, *"abc")
    residency.hold("a")
    residency.pin("b", True)
    assert residency.take("d", 1) == ["c"]
    assert residency.take("e", 2) is None
    residency.release("a")
    residency.pin("b", False)
    assert residency.take("e", 3) == ["d", "a", "b"] or residency.taken == 3


def test_what_does_not_fit_changes_nothing() -> None:
    residency = filled(3, *"abc")
    assert residency.take("d", 4) is None
    assert [residency.bytes(key) for key in "abcd"] == [1, 1, 1, 0]
    assert residency.taken == 3


def test_nothing_more_leaves_than_must() -> None:
    residency = Residency(10)
    residency.take("a", 8)
    residency.take("b", 2)
    assert residency.take("c", 3) == ["a"]


def test_a_key_may_come_to_take_more_or_less() -> None:
    residency = filled(4, *"ab")
    assert residency.take("a", 3) == []
    assert residency.take("a", 4) == ["b"]
    assert residency.take("a", 1) == []
    assert residency.taken == 1


def test_one_held_twice_is_held_until_it_was_released_twice() -> None:
    residency = filled(1, "a")
    residency.hold("a")
    residency.hold("a")
    residency.release("a")
    assert residency.take("b", 1) is None
    residency.release("a")
    assert residency.take("b", 1) == ["a"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "release", "pin", "unpin", "take", "drop"]),
        KEYS,
        st.integers(1, 6),
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 12))
def test_whatever_happens_the_budget_holds_and_what_is_used_stays(
    steps: list[tuple[str, str, int]], budget: int
) -> None:
    residency, held, pinned = Residency(budget), Counter[str](), set[str]()
    sizes: dict[str, int] = {}
    for step, key, amount in steps:
        if step == "hold":
            residency.hold(key)
            held[key] += 1
        elif step == "release" and held[key]:
            residency.release(key)
            held[key] -= 1
        elif step in ("pin", "unpin") and key in sizes:
            residency.pin(key, step == "pin")
            (pinned.add if step == "pin" else pinned.discard)(key)
        elif step == "drop":
            residency.drop(key)
            sizes.pop(key, None)
            pinned.discard(key)
        elif step == "take":
            stays = {k for k in sizes if k == key or held[k] or k in pinned}
            most = budget - sum(sizes[k] for k in stays if k != key)
            leaving = residency.take(key, amount)
            assert (leaving is None) == (amount > most)
            if leaving is not None:
                assert not stays & set(leaving)
                sizes = {k: v for k, v in sizes.items() if k not in leaving} | {key: amount}
                pinned &= set(sizes)
        assert residency.taken == sum(sizes.values()) <= budget
        assert len(residency) == len(sizes)
        assert all(residency.is_held(k) == bool(held[k]) for k in "abcdef")
