"""Outlier channels in float, all the others in int8.

A few channels of a BERT's states are several times as large as the rest, whatever the text
(Dettmers et al. 2022, "LLM.int8()"). Dynamic int8 has one scale for all activations of a layer, so
these few take most of its levels. Their share of the product is computed apart, in float, and they
are zero in what is quantised: four channels of hundreds cost next to nothing.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from transformers import BertModel

from models.network.watching import Inputs, watch

FLOAT_PART = "/outliers/"
"""In the names of graph nodes that are to stay in float."""
_CHANNELS = 4
_SPLIT = ("intermediate.dense", "output.dense")
"""The two layers of the feed-forward part, where the outliers are."""


class SplitLinear(nn.Module):
    """A linear layer whose outlier channels have a product of their own."""

    kept: Tensor
    places: Tensor

    def __init__(self, linear: nn.Linear, channels: Sequence[int]) -> None:
        super().__init__()
        self.linear = linear
        self.outliers = nn.Linear(len(channels), linear.out_features, bias=False)
        self.register_buffer("places", torch.tensor(channels))
        self.register_buffer("kept", torch.ones(linear.in_features))
        with torch.no_grad():
            self.kept[self.places] = 0
            self.outliers.weight.copy_(linear.weight[:, self.places])

    def forward(self, values: Tensor) -> Tensor:
        """[batch, tokens, in] to [batch, tokens, out], as the linear layer would give it."""
        apart: Tensor = self.outliers(values[..., self.places])
        rest: Tensor = self.linear(values * self.kept)
        return apart + rest


def split_outliers(
    body: BertModel,
    inputs: Iterable[Inputs],
    channels: int = _CHANNELS,
    network: nn.Module | None = None,
) -> None:
    """Splits the feed-forward layers of `body`, by the largest values that `inputs` bring about.

    They are run through `network`, of which `body` is a part; without one, through `body`.
    """
    layers = {
        name: module
        for name, module in body.named_modules()
        if name.endswith(_SPLIT) and "attention" not in name and isinstance(module, nn.Linear)
    }
    largest = _largest(network or body, layers, inputs)
    for name, linear in layers.items():
        places = largest[name].topk(min(channels, linear.in_features)).indices.tolist()
        parent, _, own = name.rpartition(".")
        setattr(body.get_submodule(parent), own, SplitLinear(linear, places))


def _largest(
    network: nn.Module, layers: dict[str, nn.Linear], inputs: Iterable[Inputs]
) -> dict[str, Tensor]:
    """The largest absolute value of every input channel of every layer."""
    found = {name: torch.zeros(linear.in_features) for name, linear in layers.items()}

    def see(name: str, values: Tensor) -> None:
        found[name] = torch.maximum(found[name], values.abs().amax((0, 1)))

    watch(network, layers, inputs, see)
    return found
