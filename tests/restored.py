"""Weights that were rounded to int8 and read back, compared with what they were."""

from collections.abc import Mapping

from torch import Tensor

_NEAR = 0.01
"""Of the largest weight of a layer; a step of int8 is 1/127 of it, and rounding half of that."""


def assert_alike(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    apart = {
        name: float((found[name] - weight).abs().max() / weight.abs().max())
        for name, weight in wanted.items()
        if weight.is_floating_point()
    }
    assert {name: each for name, each in apart.items() if each > _NEAR} == {}
