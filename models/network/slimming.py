"""Layers whose feed-forward part has fewer neurons (McCarley et al. 2019, "Structured Pruning of a
BERT-based Question Answering Model").

Two thirds of a layer's arithmetic is there. The neurons that say most are kept; training has to
make up for the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertModel

from models.network.watching import Inputs, watch


def slim(
    body: BertModel, layers: Sequence[int], neurons: int, inputs: Iterable[Inputs], of: nn.Module
) -> None:
    """Leaves so many neurons in each of these layers, by what they say of `inputs`, which are run
    through `of`, the network that `body` is a part of.
    """
    parts: list[Any] = [body.encoder.layer[place] for place in layers]
    said = _said([part.output.dense for part in parts], inputs, of)
    for part, values in zip(parts, said, strict=True):
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


def fit(body: BertModel, state: Mapping[str, Tensor]) -> None:
    """Gives every layer as many neurons as it has in the state of a network with this body."""
    for place, layer in enumerate(body.encoder.layer):
        part: Any = layer
        neurons = len(state[f"body.encoder.layer.{place}.intermediate.dense.bias"])
        if neurons != part.intermediate.dense.out_features:
            _resize(part, neurons)


def _said(layers: Sequence[nn.Linear], inputs: Iterable[Inputs], of: nn.Module) -> list[Tensor]:
    """How much every input of a layer is on average, whatever its sign."""
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
