"""Training with simulated int8 weights and activations.

Imitates ONNX Runtime's dynamic quantisation: weights symmetric int8 per output channel,
activations asymmetric uint8 over one whole input (one sequence, since the services never batch),
rounding passed over by gradients (Jacob et al. 2018, section 3). Knows linear layers only.
"""

import torch
from torch import Tensor, nn


class FakeQuantisedLinear(nn.Linear):
    """A linear layer that rounds its weights and inputs once `enabled`."""

    enabled = False

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """[batch, tokens, in] to [batch, tokens, out]."""
        if not self.enabled:
            return super().forward(input)
        return nn.functional.linear(
            rounded_activations(input), rounded_weights(self.weight), self.bias
        )


def rounded_weights(weight: Tensor) -> Tensor:
    """[out, in] on the grid of one int8 scale per output channel."""
    with torch.no_grad():
        scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        change = (weight / scale).round().mul_(scale).sub_(weight)
    return weight + change


def rounded_activations(values: Tensor) -> Tensor:
    """[batch, tokens, width] on the grid of one uint8 scale and zero point per sequence."""
    with torch.no_grad():
        exact = values.float()
        low = exact.amin((1, 2), keepdim=True).clamp(max=0)
        high = exact.amax((1, 2), keepdim=True).clamp(min=0)
        scale = ((high - low) / 255).clamp(min=1e-8)
        zero = (-low / scale).round()
        levels = exact.div(scale).round_().add_(zero).clamp_(0, 255)
        change = levels.sub_(zero).mul_(scale).sub_(exact).to(values.dtype)
    return values + change


def prepare(body: nn.Module) -> list[FakeQuantisedLinear]:
    """Lets every linear layer of `body` imitate int8, and returns them, not yet enabled."""
    layers = [module for module in body.modules() if type(module) is nn.Linear]
    for layer in layers:
        layer.__class__ = FakeQuantisedLinear
    return [layer for layer in layers if isinstance(layer, FakeQuantisedLinear)]


def enable(layers: list[FakeQuantisedLinear]) -> None:
    """Makes layers compute as int8 does from now on."""
    for layer in layers:
        layer.enabled = True
