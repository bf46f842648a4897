"""Compares weights before and after rounding to int8."""

from collections.abc import Mapping

from torch import Tensor

_NEAR = 0.01
"""Largest allowed error, relative to a layer's largest weight; an int8 step is 1/127 of that."""


def assert_alike(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    apart = {
        name: float((found[name] - weight).abs().max() / weight.abs().max())
        for name, weight in wanted.items()
        if weight.is_floating_point()
    }
    assert {name: each for name, each in apart.items() if each > _NEAR} == {}
