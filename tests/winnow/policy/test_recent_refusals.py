"""Who was refused a moment ago."""

from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.policy.recent_refusals import RecentRefusals


def test_a_refusal_counts_until_its_time_is_over() -> None:
    clock = ManualClock()
    refusals = RecentRefusals(0.05, 10, clock)
    refusals.add("a", 0.7)
    assert (refusals.retry_after("a"), refusals.retry_after("b")) == (0.7, None)
    clock.advance(0.06)
    assert refusals.retry_after("a") is None


def test_a_later_refusal_replaces_an_earlier_one() -> None:
    clock = ManualClock()
    refusals = RecentRefusals(0.05, 10, clock)
    refusals.add("a", 0.7)
    clock.advance(0.04)
    refusals.add("a", 0.2)
    clock.advance(0.04)
    assert refusals.retry_after("a") == 0.2


def test_when_something_has_ended_nobody_counts_as_refused() -> None:
    refusals = RecentRefusals(0.05, 10, ManualClock())
    refusals.add("a", 0.7)
    refusals.forget()
    assert refusals.retry_after("a") is None


@given(st.lists(st.text(max_size=2)), st.integers(1, 5))
def test_keys_from_outside_do_not_fill_the_memory(keys: list[str], most: int) -> None:
    refusals = RecentRefusals(1.0, most, ManualClock())
    for key in keys:
        refusals.add(key, 0.1)
        assert refusals.retry_after(key) == 0.1
    assert len(refusals._until) <= most
