"""Neurons of feed-forward layers: outlier channels stay in float, and the least useful ones go.

A few channels of a BERT's states are several times as large as the rest, for any text (Dettmers et
al. 2022, "LLM.int8()"). Dynamic int8 has one scale for all activations of a layer, so these few
take most of its levels. Their share of the product is computed separately, in float, and they are
zero in the quantised part: four channels of hundreds cost next to nothing.

Two thirds of a layer's arithmetic is in its feed-forward part. It can have fewer neurons (McCarley
et al. 2019, "Structured Pruning of a BERT-based Question Answering Model"): the neurons with the
largest outputs are kept, and training makes up for the others.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from transformers import BertModel

Inputs = tuple[Tensor, Tensor, Tensor]
"""Ids, mask and token types, int64 [batch, tokens]."""
Key = TypeVar("Key", bound=Hashable)


def watch(
    network: nn.Module,
    layers: Mapping[Key, nn.Module],
    inputs: Iterable[Inputs],
    see: Callable[[Key, Tensor], None],
) -> None:
    """Runs `inputs` through a network, and shows the first argument of every call of its layers."""

    def watched(key: Key, layer: nn.Module) -> "torch.utils.hooks.RemovableHandle":
        def called(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
            see(key, given[0])

        return layer.register_forward_pre_hook(called)

    handles = [watched(*each) for each in layers.items()]
    with torch.no_grad():
        for ids, mask, types in inputs:
            network(input_ids=ids, attention_mask=mask, token_type_ids=types)
    for handle in handles:
        handle.remove()


FLOAT_PART = "/outliers/"
"""Part of the names of graph nodes that stay in float."""
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
    largest = _largest_inputs(network or body, layers, inputs)
    for name, linear in layers.items():
        places = largest[name].topk(min(channels, linear.in_features)).indices.tolist()
        parent, _, own = name.rpartition(".")
        setattr(body.get_submodule(parent), own, SplitLinear(linear, places))


def _largest_inputs(
    network: nn.Module, layers: dict[str, nn.Linear], inputs: Iterable[Inputs]
) -> dict[str, Tensor]:
    """Returns the largest absolute value of every input channel of every layer."""
    found = {name: torch.zeros(linear.in_features) for name, linear in layers.items()}

    def see(name: str, values: Tensor) -> None:
        found[name] = torch.maximum(found[name], values.abs().amax((0, 1)))

    watch(network, layers, inputs, see)
    return found


def slim(
    body: BertModel, layers: Sequence[int], neurons: int, inputs: Iterable[Inputs], of: nn.Module
) -> None:
    """Keeps `neurons` neurons in each of these layers: the ones with the largest outputs.

    Outputs are measured on `inputs`, which run through `of`, the network that contains `body`.
    """
    parts: list[Any] = [body.encoder.layer[place] for place in layers]
    means = _mean_inputs([part.output.dense for part in parts], inputs, of)
    for part, values in zip(parts, means, strict=True):
        worth = values * part.output.dense.weight.norm(dim=0)
        kept = worth.topk(min(neurons, len(worth))).indices.sort().values
        first, last = part.intermediate.dense, part.output.dense
        weights = first.weight[kept], first.bias[kept], last.weight[:, kept], last.bias
        _resize(part, len(kept))
        first, last = part.intermediate.dense, part.output.dense
        with torch.no_grad():
            for own, new in zip(
                (first.weight, first.bias, last.weight, last.bias), weights, strict=True
            ):
                own.copy_(new)


def fit_neurons(body: BertModel, state: Mapping[str, Tensor]) -> None:
    """Gives every layer as many neurons as it has in the state of a network with this body."""
    for place, layer in enumerate(body.encoder.layer):
        part: Any = layer
        neurons = len(state[f"body.encoder.layer.{place}.intermediate.dense.bias"])
        if neurons != part.intermediate.dense.out_features:
            _resize(part, neurons)


def _mean_inputs(
    layers: Sequence[nn.Linear], inputs: Iterable[Inputs], of: nn.Module
) -> list[Tensor]:
    """Returns the mean absolute value of every input of each layer."""
    found = [torch.zeros(layer.in_features) for layer in layers]

    def add(number: int, values: Tensor) -> None:
        found[number] += values.abs().sum((0, 1))

    watch(of, dict(enumerate(layers)), inputs, add)
    return found


def _resize(part: Any, neurons: int) -> None:
    """New layers of this size; their weights are anything."""
    first, last = part.intermediate.dense, part.output.dense
    part.intermediate.dense = nn.Linear(first.in_features, neurons)
    part.output.dense = nn.Linear(neurons, last.out_features)
