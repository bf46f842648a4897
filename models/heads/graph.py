"""A trained head as an ONNX graph over the states of one text: in float32, then in int8."""

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from models.heads.network import Network, SequenceNetwork
from models.network.export import OPSET
from models.network.quantise import quantise
from winnow.heads.manifest import INPUT, OUTPUT

_TRACED = 7
"""Tokens of the text that is traced."""
FLOAT = ("/attention/",)
"""In the names of nodes that stay in float: tiny, and a whole text depends on each."""


class _Served(nn.Module):
    """What a server runs."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, states: Tensor) -> Tensor:
        return self.network.served(states)


def export_head(network: Network, width: int, target: Path) -> None:
    """Writes the graph in float32: states [tokens + 2, width] to logits."""
    served = _Served(network).eval()
    axes = {INPUT: {0: "tokens"}}
    if not isinstance(network, SequenceNetwork):
        axes[OUTPUT] = {0: "tokens"}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in models.network.export
        torch.onnx.export(
            served,
            (torch.zeros(_TRACED, width),),
            str(target),
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


def quantise_head(source: Path, target: Path) -> None:
    """Writes the graph with int8 weights."""
    quantise(source, target, FLOAT)
