"""The weights of a reader out of its int8 graph, to train it further where no checkpoint is left.

What rounding took is gone: the logits of the restored reader differ from those of the graph by some
hundredths.
"""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from models.data.rows import DataError

_TABLE = "body.embeddings.word_embeddings"
_SUFFIXES = ("/MatMul_quant", "/Gemm_MatMul_quant", "/Gemm_quant")


def restored(path: Path) -> dict[str, Tensor]:
    """The state of a `Reader` that was exported by `models.steps.graphs`.

    Raises:
        DataError: it is another kind of graph.

    """
    graph = onnx.load(path).graph
    arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    if f"{_TABLE}.levels" not in arrays:
        raise DataError(f"{path} is no int8 reader that `winnow models` made")
    state = {
        _plain(name): torch.tensor(array)
        for name, array in arrays.items()
        if name.endswith((".bias", "embeddings.weight")) or "LayerNorm" in name
    }
    table = arrays[f"{_TABLE}.levels"].astype(np.float32) * arrays[f"{_TABLE}.scale"]
    state[f"{_TABLE}.weight"] = torch.tensor(table)
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            weight = node.input[1].removesuffix("_quantized")
            levels, scale = arrays[node.input[1]], arrays[f"{weight}_scale"]
            product = levels.astype(np.float32) * scale
            state[f"{_layer(node.name)}.weight"] = torch.tensor(product.T.copy())
        elif node.op_type == "MatMul" and node.name.endswith("span/MatMul"):
            state["span.weight"] = torch.tensor(arrays[node.input[1]].T.copy())
    return state


def _layer(node: str) -> str:
    """The layer that a node multiplies for: /body/encoder/layer.0/output/dense/… and so on."""
    for suffix in _SUFFIXES:
        node = node.removesuffix(suffix)
    return _plain(node.strip("/").replace("/", "."))


def _plain(name: str) -> str:
    """A layer whose outliers are apart is called as if they were not."""
    return name.replace(".linear", "")
