"""Who used how much lately."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.policy.usage import Usage


def used(turns: str, half_life: float = 256.0, most: int = 1_000) -> Usage:
    usage = Usage(half_life, most)
    for key in turns:
        usage.add(key)
    return usage


def test_the_one_with_fewest_turns_used_least() -> None:
    assert used("abcaaaabbb").least_used("abc") == "c"
    assert used("abcaaaabbb").least_used("ba") == "b"


def test_modest_is_who_had_clearly_fewer_turns_than_another() -> None:
    usage = used("abcaaaaabbbb")
    assert [key for key in "abc" if usage.is_light(key)] == ["c"]


def test_a_new_key_counts_as_one_that_used_as_much_as_any() -> None:
    usage = used("abaaaaaac")
    assert usage.is_light("b")
    assert not usage.is_light("c")
    assert usage.least_used("bc") == "b"


def test_what_was_used_long_ago_counts_little() -> None:
    assert used("ab" + "a" * 90 + "b" * 30, half_life=8.0).least_used("ba") == "a"


@given(st.lists(st.sampled_from("abcdef"), max_size=300), st.integers(1, 4))
def test_keys_from_outside_do_not_fill_the_memory(turns: list[str], most: int) -> None:
    usage = used("".join(turns), most=most)
    assert len(usage) <= most
    assert all(turn in usage for turn in turns[-1:])


def test_weights_are_made_small_in_time() -> None:
    """Floats would overflow otherwise."""
    usage = used("ab" + "a" * 5_000, half_life=1.0)
    assert "a" in usage
    assert "b" not in usage
    assert max(usage._usage_by_key.values()) < 1e12
