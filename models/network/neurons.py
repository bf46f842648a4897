"""Splits outlier channels from feed-forward layers, and prunes their neurons.

A few channels of BERT's states are several times as large as the rest, for any text (Dettmers et
al. 2022, "LLM.int8()"). Dynamic int8 has one scale for all activations of a layer, so these outlier
channels use up most of the int8 levels. Four outlier channels per layer are therefore multiplied
separately in float, which costs little.

Two thirds of a layer's arithmetic is in its feed-forward part. Pruning keeps the neurons with the
largest outputs, and training compensates for the removed neurons (McCarley et al. 2019, "Structured
Pruning of a BERT-based Question Answering Model").
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from transformers import BertModel

Inputs = tuple[Tensor, Tensor, Tensor]
"""Ids, mask and token types, int64 [batch, tokens]."""
Key = TypeVar("Key", bound=Hashable)


def record_inputs(
    network: nn.Module,
    layers: Mapping[Key, nn.Module],
    inputs: Iterable[Inputs],
    record: Callable[[Key, Tensor], None],
) -> None:
    """Runs a network, and passes the input of every call of `layers` to `record`."""

    def add_hook(key: Key, layer: nn.Module) -> "torch.utils.hooks.RemovableHandle":
        def hook(_module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
            record(key, arguments[0])

        return layer.register_forward_pre_hook(hook)

    handles = [add_hook(*each) for each in layers.items()]
    with torch.no_grad():
        for ids, mask, types in inputs:
            network(input_ids=ids, attention_mask=mask, token_type_ids=types)
    for handle in handles:
        handle.remove()


FLOAT_PART = "/outliers/"
"""Part of the names of the graph nodes that multiply outlier channels, which stay in float."""
_CHANNELS = 4
"""Number of outlier channels of each layer."""
_FEED_FORWARD = ("intermediate.dense", "output.dense")
"""Suffixes of the names of feed-forward layers, the layers with outlier channels."""


class OutlierSplitLinear(nn.Module):
    """A linear layer that multiplies its outlier channels separately."""

    inlier_mask: Tensor
    outlier_channels: Tensor

    def __init__(self, linear: nn.Linear, channels: Sequence[int]) -> None:
        super().__init__()
        self.linear = linear
        self.outliers = nn.Linear(len(channels), linear.out_features, bias=False)
        self.register_buffer("outlier_channels", torch.tensor(channels))
        self.register_buffer("inlier_mask", torch.ones(linear.in_features))
        with torch.no_grad():
            self.inlier_mask[self.outlier_channels] = 0
            self.outliers.weight.copy_(linear.weight[:, self.outlier_channels])

    def forward(self, values: Tensor) -> Tensor:
        """Maps [batch, tokens, in] to [batch, tokens, out], like the original layer."""
        outliers: Tensor = self.outliers(values[..., self.outlier_channels])
        others: Tensor = self.linear(values * self.inlier_mask)
        return outliers + others


def split_outliers(
    body: BertModel,
    inputs: Iterable[Inputs],
    channels: int = _CHANNELS,
    network: nn.Module | None = None,
) -> None:
    """Splits the feed-forward layers of `body` by the channels with the largest inputs.

    Runs `inputs` through `network`, which contains `body`. The default is `body` itself.
    """
    layers = {
        name: module
        for name, module in body.named_modules()
        if name.endswith(_FEED_FORWARD)
        and "attention" not in name
        and isinstance(module, nn.Linear)
    }
    largest = _largest_inputs(network or body, layers, inputs)
    for name, linear in layers.items():
        outliers = largest[name].topk(min(channels, linear.in_features)).indices.tolist()
        parent, _, attribute = name.rpartition(".")
        setattr(body.get_submodule(parent), attribute, OutlierSplitLinear(linear, outliers))


def _largest_inputs(
    network: nn.Module, layers: dict[str, nn.Linear], inputs: Iterable[Inputs]
) -> dict[str, Tensor]:
    """Returns the largest absolute value of every input channel of every layer."""
    largest = {name: torch.zeros(linear.in_features) for name, linear in layers.items()}

    def record(name: str, values: Tensor) -> None:
        largest[name] = torch.maximum(largest[name], values.abs().amax((0, 1)))

    record_inputs(network, layers, inputs, record)
    return largest


def prune_neurons(
    body: BertModel,
    layers: Sequence[int],
    neurons: int,
    inputs: Iterable[Inputs],
    network: nn.Module,
) -> None:
    """Keeps the `neurons` neurons with the largest outputs in each of these layers.

    Outputs are measured by running `inputs` through `network`, which contains `body`.
    """
    blocks: list[Any] = [body.encoder.layer[index] for index in layers]
    sums_by_block = _sum_absolute_inputs([block.output.dense for block in blocks], inputs, network)
    for block, values in zip(blocks, sums_by_block, strict=True):
        outputs = values * block.output.dense.weight.norm(dim=0)
        kept = outputs.topk(min(neurons, len(outputs))).indices.sort().values
        first, last = block.intermediate.dense, block.output.dense
        weights = first.weight[kept], first.bias[kept], last.weight[:, kept], last.bias
        _resize(block, len(kept))
        first, last = block.intermediate.dense, block.output.dense
        with torch.no_grad():
            for target, source in zip(
                (first.weight, first.bias, last.weight, last.bias), weights, strict=True
            ):
                target.copy_(source)


def resize_to_weights(body: BertModel, state: Mapping[str, Tensor]) -> None:
    """Resizes the feed-forward part of every layer to the weights in `state`."""
    for index, layer in enumerate(body.encoder.layer):
        block: Any = layer
        neurons = len(state[f"body.encoder.layer.{index}.intermediate.dense.bias"])
        if neurons != block.intermediate.dense.out_features:
            _resize(block, neurons)


def _sum_absolute_inputs(
    layers: Sequence[nn.Linear], inputs: Iterable[Inputs], network: nn.Module
) -> list[Tensor]:
    """Returns, for each layer, the sum of the absolute values of each input channel."""
    sums = [torch.zeros(layer.in_features) for layer in layers]

    def add(index: int, values: Tensor) -> None:
        sums[index] += values.abs().sum((0, 1))

    record_inputs(network, dict(enumerate(layers)), inputs, add)
    return sums


def _resize(block: Any, neurons: int) -> None:
    """Replaces the feed-forward layers by layers with `neurons` neurons and arbitrary weights."""
    first, last = block.intermediate.dense, block.output.dense
    block.intermediate.dense = nn.Linear(first.in_features, neurons)
    block.output.dense = nn.Linear(neurons, last.out_features)
