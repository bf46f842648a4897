"""Exports a projection of late interaction as ONNX nodes that follow those of an encoder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from models.network.export import layer_outputs
from models.network.late_interaction import LateInteraction
from winnow.late_interaction.extension import VECTORS, WEIGHTS

_PREFIX = "late_interaction/"
_MIN_NORM = 1e-12
"""The smallest divisor of `torch.nn.functional.normalize`."""


def late_interaction_nodes(encoder: Path, projection: LateInteraction) -> bytes:
    """Returns the serialised nodes of a projection, to append to the file of `encoder`.

    Raises:
        IndexError: the encoder has fewer layers than the projection needs.

    """
    outputs = layer_outputs(encoder)
    states = [outputs[layer] for layer in projection.layers]
    weights = {name: value.detach().numpy() for name, value in projection.state_dict().items()}
    constants = {
        "project": weights["project.weight"].T,
        "weigh": weights["weigh.weight"].T,
        "bias": weights["weigh.bias"],
        "scale": weights["scale"],
        "min_norm": np.array(_MIN_NORM, np.float32),
        "last": np.array([-1], np.int64),
    }
    nodes = [
        helper.make_node("Concat", states, [_name("states")], axis=-1),
        _node("MatMul", ["states", "project"], "projected"),
        _node("ReduceL2", ["projected"], "norms", axes=[-1], keepdims=1),
        _node("Max", ["norms", "min_norm"], "divisors"),
        helper.make_node("Div", [_name("projected"), _name("divisors")], [VECTORS]),
        _node("MatMul", ["states", "weigh"], "weighed"),
        _node("Add", ["weighed", "bias"], "biased"),
        _node("Softplus", ["biased"], "positive"),
        _node("Mul", ["positive", "scale"], "scaled"),
        helper.make_node("Squeeze", [_name("scaled"), _name("last")], [WEIGHTS]),
    ]
    model = onnx.ModelProto()
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(
        _constant(_name(name), value) for name, value in constants.items()
    )
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in (VECTORS, WEIGHTS))
    serialised: bytes = model.SerializeToString()
    return serialised


def _node(operator: str, inputs: Iterable[str], output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(operator, list(map(_name, inputs)), [_name(output)], **attributes)


def _constant(name: str, value: np.ndarray) -> TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(value), name)


def _name(name: str) -> str:
    return _PREFIX + name
