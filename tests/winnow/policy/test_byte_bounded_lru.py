"""What is kept within a budget of bytes."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.policy.byte_bounded_lru import ByteBoundedLru


class Counted:
    def __init__(self) -> None:
        self.bytes = self.evicted = 0

    def count_lookup(self, result: str) -> None:
        raise AssertionError("the caller counts lookups")

    def resize(self, added_bytes: int, evicted: int) -> None:
        self.bytes += added_bytes
        self.evicted += evicted


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.integers(0, 12)),
        st.tuples(st.just("get"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("clear"), st.just(0), st.just(0)),
    )
)


@given(ACTIONS, st.integers(0, 20))
def test_bytes_never_go_beyond_the_budget_and_are_told_rightly(
    actions: list[tuple[str, int, int]], budget: int
) -> None:
    counted, last = Counted(), dict[int, int]()
    kept = ByteBoundedLru[int, int](budget, counted)
    for number, (action, key, size) in enumerate(actions):
        if action == "put":
            kept.put(key, number, size)
            last[key] = number
            assert (kept.get(key) == number) == (size <= budget)
        elif action == "get":
            assert kept.get(key) in (None, last.get(key)), "never an older value"
        else:
            kept.clear()
            assert len(kept) == 0
        assert 0 <= kept.bytes <= budget
        assert counted.bytes == kept.bytes


def test_the_longest_unused_leave_and_no_more_of_them_than_must() -> None:
    counted = Counted()
    kept = ByteBoundedLru[str, str](10, counted)
    for key in "abc":
        kept.put(key, key, 3)
    kept.get("a")
    kept.put("d", "d", 3)
    assert [kept.get(key) for key in "abcd"] == ["a", None, "c", "d"]
    assert counted.evicted == 1


def test_one_that_is_larger_than_the_budget_drives_nobody_out() -> None:
    kept = ByteBoundedLru[str, str](10)
    kept.put("a", "a", 10)
    kept.put("b", "b", 11)
    assert (kept.get("a"), kept.get("b")) == ("a", None)
