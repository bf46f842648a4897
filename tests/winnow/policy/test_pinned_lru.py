"""What stays in memory: a budget that is never exceeded, and nothing that is used ever leaves."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from winnow.policy.pinned_lru import PinnedLru

KEYS = st.sampled_from("abcdef")


def filled(budget: int, *keys: str) -> PinnedLru:
    lru = PinnedLru(budget)
    for key in keys:
        assert lru.take(key, 1) == []
    return lru


def test_the_least_recently_used_leaves_first() -> None:
    lru = filled(3, *"abc")
    lru.hold("a")
    lru.release("a")
    assert lru.take("d", 2) == ["b", "c"]
    assert lru.used_bytes == 3


def test_what_is_in_use_or_pinned_stays() -> None:
    lru = filled(3, *"abc")
    lru.hold("a")
    lru.pin("b", True)
    assert lru.take("d", 1) == ["c"]
    assert lru.take("e", 2) is None
    lru.release("a")
    lru.pin("b", False)
    assert lru.take("e", 3) == ["d", "a", "b"] or lru.used_bytes == 3


def test_what_does_not_fit_changes_nothing() -> None:
    lru = filled(3, *"abc")
    assert lru.take("d", 4) is None
    assert [lru.bytes(key) for key in "abcd"] == [1, 1, 1, 0]
    assert lru.used_bytes == 3


def test_nothing_more_leaves_than_must() -> None:
    lru = PinnedLru(10)
    lru.take("a", 8)
    lru.take("b", 2)
    assert lru.take("c", 3) == ["a"]


def test_a_key_may_come_to_take_more_or_less() -> None:
    lru = filled(4, *"ab")
    assert lru.take("a", 3) == []
    assert lru.take("a", 4) == ["b"]
    assert lru.take("a", 1) == []
    assert lru.used_bytes == 1


def test_one_held_twice_is_held_until_it_was_released_twice() -> None:
    lru = filled(1, "a")
    lru.hold("a")
    lru.hold("a")
    lru.release("a")
    assert lru.take("b", 1) is None
    lru.release("a")
    assert lru.take("b", 1) == ["a"]


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
    lru, held, pinned = PinnedLru(budget), Counter[str](), set[str]()
    sizes: dict[str, int] = {}
    for step, key, amount in steps:
        if step == "hold":
            lru.hold(key)
            held[key] += 1
        elif step == "release" and held[key]:
            lru.release(key)
            held[key] -= 1
        elif step in ("pin", "unpin") and key in sizes:
            lru.pin(key, step == "pin")
            (pinned.add if step == "pin" else pinned.discard)(key)
        elif step == "drop":
            lru.drop(key)
            sizes.pop(key, None)
            pinned.discard(key)
        elif step == "take":
            stays = {k for k in sizes if k == key or held[k] or k in pinned}
            most = budget - sum(sizes[k] for k in stays if k != key)
            leaving = lru.take(key, amount)
            assert (leaving is None) == (amount > most)
            if leaving is not None:
                assert not stays & set(leaving)
                sizes = {k: v for k, v in sizes.items() if k not in leaving} | {key: amount}
                pinned &= set(sizes)
        assert lru.used_bytes == sum(sizes.values()) <= budget
        assert len(lru) == len(sizes)
        assert all(lru.is_held(k) == bool(held[k]) for k in "abcdef")
