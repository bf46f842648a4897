"""What questions that stop early are reckoned with."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.policy.usual import UsualReads

NEEDED = st.lists(st.integers(0, 30), max_size=60)


def after(needed: list[int], passages: int = 10) -> UsualReads:
    usual = UsualReads(passages)
    for each in needed:
        usual.took(each)
    return usual


def test_at_first_every_passage_is_expected() -> None:
    assert [UsualReads(10).expected(reads) for reads in (1, 5, 10, 40)] == [1, 5, 10, 40]


def test_what_questions_need_is_learnt_within_some_of_them() -> None:
    assert after([10] * 5).expected(10) == 10
    assert after([2] * 10).expected(10) == 7
    assert after([2] * 200).expected(10) == 3
    assert after([2] * 200 + [10] * 100).expected(10) == 10


def test_who_may_read_fewer_is_not_expected_to_stop_earlier() -> None:
    usual = after([4] * 500)
    assert [usual.expected(reads) for reads in (1, 3, 5, 8)] == [1, 3, 4, 4]


def test_who_may_read_more_needs_the_same_share_of_them() -> None:
    usual = after([4] * 500)
    assert usual.expected(100) == 40


@given(NEEDED, st.integers(1, 100))
def test_more_is_expected_of_who_may_read_more_and_never_more_than_that(
    needed: list[int], passages: int
) -> None:
    usual = after(needed, passages)
    expected = [usual.expected(reads) for reads in range(1, 150)]
    assert expected == sorted(expected)
    assert all(1 <= each <= reads for reads, each in enumerate(expected, 1))
