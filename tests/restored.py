"""Comparison of weights before and after they are rounded to int8."""

from collections.abc import Mapping

from torch import Tensor

_NEAR = 0.01
"""Most error, as a share of the largest weight of a layer; a step of int8 is 1/127 of it."""


def assert_alike(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    apart = {
        name: float((found[name] - weight).abs().max() / weight.abs().max())
        for name, weight in wanted.items()
        if weight.is_floating_point()
    }
    assert {name: each for name, each in apart.items() if each > _NEAR} == {}
