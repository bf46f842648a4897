"""Tests of means of weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.network.architecture import interpolate_weights, mean_weights

values = st.lists(st.floats(-10, 10, width=32), min_size=3, max_size=3)


def network(weights: list[float], steps: int = 7) -> dict[str, torch.Tensor]:
    return {"weight": torch.tensor(weights), "steps": torch.tensor(steps)}


@given(st.lists(values, min_size=1, max_size=4))
def test_the_mean_is_computed_for_each_weight(rows: list[list[float]]) -> None:
    found = mean_weights([network(row) for row in rows])
    assert found["weight"].tolist() == pytest.approx(
        [sum(column) / len(rows) for column in zip(*rows, strict=True)], abs=1e-5
    )
    assert found["steps"].item() == 7


@given(values, values)
def test_interpolated_weights_lie_between_both_networks(old: list[float], new: list[float]) -> None:
    before, after = network(old), network(new)
    assert torch.equal(interpolate_weights(before, after, 0)["weight"], before["weight"])
    torch.testing.assert_close(interpolate_weights(before, after, 1)["weight"], after["weight"])
    halfway = interpolate_weights(before, after, 0.5)["weight"]
    torch.testing.assert_close(
        halfway, mean_weights([before, after])["weight"], atol=1e-5, rtol=1e-5
    )
