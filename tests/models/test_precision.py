"""Tests of imitating int8 in training, and of storing it."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from models.network.export import RowQuantisedEmbedding
from models.network.fake_quantisation import (
    enable_quantisation,
    prepare_quantisation,
    round_activations,
    round_weights,
)


@given(st.integers(0, 1000))
def test_weights_lie_on_a_grid_of_one_scale_a_channel(seed: int) -> None:
    weight = torch.randn(4, 8, generator=torch.Generator().manual_seed(seed))
    levels = round_weights(weight) / (weight.abs().amax(1, keepdim=True) / 127)
    assert torch.allclose(levels, levels.round(), atol=1e-3)
    assert levels.abs().max() <= 127.001


@given(st.integers(0, 1000))
def test_activations_are_rounded_by_at_most_half_a_level(seed: int) -> None:
    values = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(seed)) * 3
    level = (values.amax((1, 2)).clamp(min=0) - values.amin((1, 2)).clamp(max=0)) / 255
    error = (round_activations(values) - values).abs().amax((1, 2))
    # the zero point is rounded as well, which moves the two ends of the range
    assert bool((error <= level * 1.01).all())


def test_a_sequence_is_rounded_independently_of_its_batch() -> None:
    values = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))
    alone = round_activations(values[:1])
    louder = values * torch.tensor([1.0, 100.0]).view(2, 1, 1)
    assert torch.equal(round_activations(louder)[:1], alone)


def test_gradients_pass_over_the_rounding() -> None:
    weight = torch.randn(2, 3, requires_grad=True)
    round_weights(weight).sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    assert torch.equal(weight.grad, torch.ones(2, 3))


def test_layers_imitate_int8_only_once_enabled() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(8, 8))
    values = torch.randn(1, 2, 8)
    exact = network(values)
    layers = prepare_quantisation(network)
    assert torch.equal(network(values), exact)
    enable_quantisation(layers)
    changed = network(values)
    assert not torch.equal(changed, exact)
    assert torch.allclose(changed, exact, atol=0.1)


@given(st.integers(0, 1000))
def test_an_int8_table_is_rounded_by_at_most_half_a_level(seed: int) -> None:
    table = torch.randn(6, 16, generator=torch.Generator().manual_seed(seed))
    table *= torch.logspace(-2, 2, 6).unsqueeze(1)
    error = (RowQuantisedEmbedding(table)(torch.arange(6)) - table).abs().amax(1)
    assert bool((error <= table.abs().amax(1) / 127 * 0.501).all())
