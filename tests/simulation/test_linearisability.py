"""Which histories of a register are linearisable."""

import pytest

from simulation.linearisability import RegisterOperation, is_linearisable


def wrote(value: str, begun: float, ended: float, certain: bool = True) -> RegisterOperation:
    return RegisterOperation(True, value, begun, ended, certain)


def read(value: str, begun: float, ended: float) -> RegisterOperation:
    return RegisterOperation(False, value, begun, ended)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([], True),
        ([wrote("a", 0, 1), read("a", 2, 3)], True),
        ([wrote("a", 0, 1), read("", 2, 3)], False),
        ([wrote("a", 0, 2), read("", 1, 3)], True),
        # two writes that overlap may have either order, but all readers see the same
        ([wrote("a", 0, 9), wrote("b", 0, 9), read("a", 2, 3), read("b", 4, 5)], True),
        (
            [wrote("a", 0, 9), wrote("b", 0, 9), read("a", 2, 3), read("b", 4, 5), read("a", 6, 7)],
            False,
        ),
        # an uncertain write has an effect or none, but no effect after its end
        ([wrote("a", 0, 1), wrote("b", 2, 3, certain=False), read("a", 4, 5)], True),
        ([wrote("a", 0, 1), wrote("b", 2, 3, certain=False), read("b", 4, 5)], True),
        (
            [
                wrote("b", 0, 1, certain=False),
                wrote("a", 2, 3),
                read("a", 4, 5),
                read("b", 6, 7),
            ],
            False,
        ),
    ],
)
def test_a_history_is_linearisable_if_one_order_explains_it(
    operations: list[RegisterOperation], expected: bool
) -> None:
    assert is_linearisable(operations) is expected
