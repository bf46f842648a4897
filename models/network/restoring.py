"""Restores the weights of a reader from its int8 graph, to train it further.

Precision lost to rounding is not restored. The logits differ from those of the graph by a few
hundredths.
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
from models.network.neurons import fit_neurons

_TABLE = "body.embeddings.word_embeddings"
_BIAS = ".bias"
_PRODUCTS = ("MatMulInteger", "MatMul")
_AFTER = (*_PRODUCTS, "Cast", "Mul")
"""Operators between an integer product and its bias."""
Array = NDArray[Any]


def restored(path: Path) -> dict[str, Tensor]:
    """Returns the state of a `Reader` that was exported by `models.steps.graphs`.

    Raises:
        DataError: it is another kind of graph.

    """
    state = _weights(path)
    if f"{_TABLE}.weight" not in state:
        raise DataError(f"{path} is not an int8 reader made by `winnow models`")
    return state


def restored_split_reader(lower: Path, upper: Path, apart: int) -> dict[str, Tensor]:
    """Returns the state of an `ApartReader` that was exported by `models.steps.split_reader`.

    Raises:
        DataError: it is another kind of graph, or splits another number of layers.

    """
    below = restored(lower)
    layers = {name.split(".")[3] for name in below if name.startswith("body.encoder.layer.")}
    if len(layers) != apart:
        raise DataError(f"{lower} has {len(layers)} layers apart, not {apart}")
    return below | _weights(upper)


def take_over(network: nn.Module, body: BertModel, state: Mapping[str, Tensor], of: Path) -> None:
    """Gives a network the weights `of` somewhere, and its layers as many neurons as these have.

    Raises:
        DataError: they are those of another kind of network.

    """
    try:
        fit_neurons(body, state)
        network.load_state_dict(state)
    except (KeyError, RuntimeError) as error:
        raise DataError(
            f"{of} has the weights of another network, such as one with fewer layers: {error}"
        ) from error


def _weights(path: Path) -> dict[str, Tensor]:
    graph = onnx.load(path).graph
    arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    state = {
        _plain(name): torch.tensor(array)
        for name, array in arrays.items()
        if name != f"{_TABLE}.weight"
        and (name.endswith((".bias", "embeddings.weight")) or "LayerNorm" in name)
    }
    if f"{_TABLE}.levels" in arrays:
        table = arrays[f"{_TABLE}.levels"].astype(np.float32) * arrays[f"{_TABLE}.scale"]
        state[f"{_TABLE}.weight"] = torch.tensor(table)
    next_ = {name: node for node in graph.node for name in node.input}
    for node in graph.node:
        layer = _layer(node, next_, arrays) if node.op_type in _PRODUCTS else None
        if layer is not None:
            name = f"{_plain(layer)}.weight"
            if name in state:  # equal biases are written once, for whichever layer
                raise DataError(f"{path}: two layers share the bias of {_plain(layer)}")
            state[name] = torch.tensor(_product(node, arrays).T.copy())
    return state


def _layer(
    node: NodeProto, next_: Mapping[str, NodeProto], arrays: Mapping[str, Array]
) -> str | None:
    """Returns the layer that a node multiplies for, by the bias that is added next; None without
    one.
    """
    while node.op_type in _AFTER:
        if node.output[0] not in next_:
            return None
        node = next_[node.output[0]]
    names = [name for name in node.input if name in arrays and name.endswith(_BIAS)]
    return names[0].removesuffix(_BIAS) if names and node.op_type == "Add" else None


def _product(node: NodeProto, arrays: Mapping[str, Array]) -> Array:
    """Returns the matrix that a node multiplies by, [in, out]."""
    name = node.input[1]
    if node.op_type == "MatMul":
        return arrays[name]
    scale = arrays[f"{name.removesuffix('_quantized')}_scale"]
    return arrays[name].astype(np.float32) * scale


def _plain(name: str) -> str:
    """Returns a layer whose outliers are apart is called as if they were not."""
    return name.replace(".linear", "")
