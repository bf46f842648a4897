"""Restores the weights of a reader from its int8 graph, to continue its training.

Rounding errors remain: the logits differ from those of the graph by a few hundredths.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import NodeProto, numpy_helper
from torch import Tensor, nn
from transformers import BertModel

from models.data import DataError
from models.network.neurons import resize_to_weights

_TABLE = "body.embeddings.word_embeddings"
_BIAS = ".bias"
_PRODUCTS = ("MatMulInteger", "MatMul")
_BEFORE_BIAS = (*_PRODUCTS, "Cast", "Mul")
"""Operators between a product and the addition of its bias."""
Array = NDArray[Any]


def restore_weights(path: Path) -> dict[str, Tensor]:
    """Returns the weights of a `Reader` that `models.steps.graphs` exported.

    Raises:
        DataError: the graph is of another kind.

    """
    state = _read_weights(path)
    if f"{_TABLE}.weight" not in state:
        raise DataError(f"{path} is not an int8 reader graph made by `winnow models`")
    return state


def restore_split_weights(lower: Path, upper: Path, split_layers: int) -> dict[str, Tensor]:
    """Returns the weights of a `SplitReader` that `models.steps.split_reader` exported.

    Raises:
        DataError: the graph is of another kind, or has another number of split layers.

    """
    below = restore_weights(lower)
    layers = {name.split(".")[3] for name in below if name.startswith("body.encoder.layer.")}
    if len(layers) != split_layers:
        raise DataError(f"{lower} has {len(layers)} split layers, not {split_layers}")
    return below | _read_weights(upper)


def load_weights(
    network: nn.Module, body: BertModel, state: Mapping[str, Tensor], source: Path
) -> None:
    """Loads `state` into `network`, after resizing the feed-forward layers of `body` to it.

    `source` is the file of the weights, for errors.

    Raises:
        DataError: the weights belong to another kind of network.

    """
    try:
        resize_to_weights(body, state)
        network.load_state_dict(state)
    except (KeyError, RuntimeError) as error:
        raise DataError(
            f"{source} has the weights of another network, such as one with fewer layers: {error}"
        ) from error


def _read_weights(path: Path) -> dict[str, Tensor]:
    graph = onnx.load(path).graph
    arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    state = {
        _original_name(name): torch.tensor(array)
        for name, array in arrays.items()
        if name != f"{_TABLE}.weight"
        and (name.endswith((".bias", "embeddings.weight")) or "LayerNorm" in name)
    }
    if f"{_TABLE}.levels" in arrays:
        table = arrays[f"{_TABLE}.levels"].astype(np.float32) * arrays[f"{_TABLE}.scale"]
        state[f"{_TABLE}.weight"] = torch.tensor(table)
    consumers = {name: node for node in graph.node for name in node.input}
    for node in graph.node:
        layer = _layer_name(node, consumers, arrays) if node.op_type in _PRODUCTS else None
        if layer is not None:
            name = f"{_original_name(layer)}.weight"
            if name in state:  # the exporter writes equal biases only once
                raise DataError(f"{path}: two layers share the bias of {_original_name(layer)}")
            state[name] = torch.tensor(_matrix(node, arrays).T.copy())
    return state


def _layer_name(
    node: NodeProto, consumers: Mapping[str, NodeProto], arrays: Mapping[str, Array]
) -> str | None:
    """Returns the name of the layer of a product, from the name of the bias that is added.

    Returns None if no bias is added.
    """
    while node.op_type in _BEFORE_BIAS:
        if node.output[0] not in consumers:
            return None
        node = consumers[node.output[0]]
    names = [name for name in node.input if name in arrays and name.endswith(_BIAS)]
    return names[0].removesuffix(_BIAS) if names and node.op_type == "Add" else None


def _matrix(node: NodeProto, arrays: Mapping[str, Array]) -> Array:
    """Returns the matrix of a product, [in, out]."""
    name = node.input[1]
    if node.op_type == "MatMul":
        return arrays[name]
    scale = arrays[f"{name.removesuffix('_quantized')}_scale"]
    return arrays[name].astype(np.float32) * scale


def _original_name(name: str) -> str:
    """Returns the name of a layer or weight without the part added by `OutlierSplitLinear`."""
    return name.replace(".linear", "")
