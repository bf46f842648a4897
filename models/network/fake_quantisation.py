"""Trains linear layers with simulated int8 weights and activations.

Imitates ONNX Runtime's dynamic quantisation. Weights are symmetric int8 per output channel.
Activations are asymmetric uint8 per sequence, because the services never batch. Gradients ignore
the rounding (Jacob et al. 2018, section 3).
"""

import torch
from torch import Tensor, nn


class FakeQuantisedLinear(nn.Linear):
    """A linear layer that rounds its weights and inputs if `enabled`."""

    enabled = False

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Maps [batch, tokens, in] to [batch, tokens, out]."""
        if not self.enabled:
            return super().forward(input)
        return nn.functional.linear(round_activations(input), round_weights(self.weight), self.bias)


def round_weights(weight: Tensor) -> Tensor:
    """Rounds weights [out, in] to int8 levels, with one scale per output channel."""
    with torch.no_grad():
        scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        change = (weight / scale).round().mul_(scale).sub_(weight)
    return weight + change


def round_activations(values: Tensor) -> Tensor:
    """Rounds [batch, tokens, width] to uint8 levels, with one scale and zero point per sequence."""
    with torch.no_grad():
        exact = values.float()
        low = exact.amin((1, 2), keepdim=True).clamp(max=0)
        high = exact.amax((1, 2), keepdim=True).clamp(min=0)
        scale = ((high - low) / 255).clamp(min=1e-8)
        zero = (-low / scale).round()
        levels = exact.div(scale).round_().add_(zero).clamp_(0, 255)
        change = levels.sub_(zero).mul_(scale).sub_(exact).to(values.dtype)
    return values + change


def prepare_quantisation(body: nn.Module) -> list[FakeQuantisedLinear]:
    """Converts the linear layers of `body` and returns them. Rounding is still disabled."""
    layers = [module for module in body.modules() if type(module) is nn.Linear]
    for layer in layers:
        layer.__class__ = FakeQuantisedLinear
    return [layer for layer in layers if isinstance(layer, FakeQuantisedLinear)]


def enable_quantisation(layers: list[FakeQuantisedLinear]) -> None:
    """Makes the layers round their weights and inputs."""
    for layer in layers:
        layer.enabled = True
