"""Positions that tenants get: opaque, and only of use to the same tenant."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.write import Position
from winnow.errors import InvalidRequestError
from winnow.stateless.tenants.positions import PositionCipher

ACME, OTHER = PositionCipher("index", "acme"), PositionCipher("index", "other")


@pytest.mark.hypothesis
@given(st.integers(0, 4_000), st.integers(0, 2**40 - 1))
def test_a_sealed_position_opens_to_the_same_one_and_is_exact_in_json(
    shard: int, sequence: int
) -> None:
    sealed = ACME.seal(Position(shard, sequence, "docs"))
    assert ACME.open(sealed) == Position(shard, sequence, "docs")
    assert sealed.sequence < 2**53


def test_the_positions_of_successive_writes_are_far_apart_and_in_no_order() -> None:
    sealed = [ACME.seal(Position(0, number)).sequence for number in range(100)]
    steps = [after - before for before, after in pairwise(sealed)]
    assert 30 < sum(step > 0 for step in steps) < 70
    assert min(map(abs, steps)) > 2**30
    assert OTHER.seal(Position(0, 1)).sequence != sealed[1] != ACME.seal(Position(1, 1)).sequence


def test_a_position_of_another_tenant_or_an_invented_one_is_refused() -> None:
    invented = [Position(0, 17), Position(0, 2**52), Position(0, 2**64 - 1)]
    for position in (*invented, OTHER.seal(Position(0, 17))):
        with pytest.raises(InvalidRequestError, match="is not of this index and tenant"):
            ACME.open_all([position])
