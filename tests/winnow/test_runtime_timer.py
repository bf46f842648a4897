"""Which of several timed ways is taken."""

import pytest

from winnow.inference.runtime_timer import clearly_fastest


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [
        ([1.0], 0),
        ([1.0, 2.0], 0),
        ([1.0, 1.0], 0),
        ([1.0, 0.95], 0),
        ([1.0, 0.9], 0),
        ([1.0, 0.89], 1),
        ([1.0, 0.5, 0.4], 2),
        ([1.0, 0.95, 0.93], 0),
        ([0.0, 0.0], 0),
    ],
)
def test_the_first_is_taken_unless_another_is_clearly_faster(
    seconds: list[float], taken: int
) -> None:
    assert clearly_fastest(seconds, min_saving=0.1) == taken
