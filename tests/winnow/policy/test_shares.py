"""Shares of things that come in whole numbers."""

import pytest

from winnow.policy.shares import smallest_count_for_share


@pytest.mark.parametrize(
    ("share", "count", "whole"),
    [
        (0.0, 7, 0),
        (1.0, 7, 7),
        (0.5, 7, 4),
        (0.3, 10, 3),
        # products that come out a little too large as floats
        (0.55, 20, 11),
        (0.07, 100, 7),
        (0.58, 100, 58),
    ],
)
def test_a_share_is_rounded_up_but_not_for_a_rounding_error(
    share: float, count: int, whole: int
) -> None:
    assert smallest_count_for_share(share, count) == whole
