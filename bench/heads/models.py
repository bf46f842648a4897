"""Heads for measuring: some have the shape of trained ones, some say who they are."""

import functools
import logging
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from winnow.bundle import Bundle
from winnow.heads.manifest import INPUT, OUTPUT
from winnow.heads.store import HeadStore
from winnow.heads.writing import write_head

LABELS = 20
"""Of a head; tenants have some ten or twenty."""
_QUERIES, _HIDDEN = 4, 160
_OPSET, _IR = 20, 9
_Node = tuple[str, list[str], str, dict[str, Any]]
"""Operator, inputs, output and attributes."""


@functools.cache
def trained_shape(width: int) -> bytes:
    """A head like those that `winnow models train-head` makes: weighted means of the states, one
    hidden layer, int8.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415 (slow)

    chance = np.random.default_rng(0)
    sizes = {
        "look": (width, width // 6),
        "attend": (width // 6, _QUERIES),
        "hide": (_QUERIES * width, _HIDDEN),
        "label": (_HIDDEN, LABELS),
    }
    weights = {
        name: chance.normal(0, 0.05, size).astype(np.float32) for name, size in sizes.items()
    }
    nodes: list[_Node] = [
        ("MatMul", [INPUT, "look"], "looked", {}),
        ("Tanh", ["looked"], "seen", {}),
        ("MatMul", ["seen", "attend"], "attended", {}),
        ("Softmax", ["attended"], "shares", {"axis": 0}),
        ("Transpose", ["shares"], "turned", {"perm": [1, 0]}),
        ("MatMul", ["turned", INPUT], "means", {}),
        ("Reshape", ["means", "one_row"], "row", {}),
        ("MatMul", ["row", "hide"], "hidden", {}),
        ("Relu", ["hidden"], "kept", {}),
        ("MatMul", ["kept", "label"], "labelled", {}),
        ("Reshape", ["labelled", "flat"], OUTPUT, {}),
    ]
    shapes = {"one_row": np.array([1, -1], np.int64), "flat": np.array([-1], np.int64)}
    whole = _model(nodes, {**weights, **shapes}, width, LABELS)
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory) / "whole.onnx", Path(directory) / "int8.onnx"
        source.write_bytes(whole)
        logging.getLogger().setLevel(logging.ERROR)  # it advises a step that gains nothing here
        quantize_dynamic(
            str(source),
            str(target),
            per_channel=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul"],
            extra_options={"MatMulConstBOnly": True},
        )
        return target.read_bytes()


def saying(width: int, labels: int, place: int) -> bytes:
    """A head that gives every text the label at `place`."""
    bias = np.zeros(labels, np.float32)
    bias[place] = 5.0
    nodes: list[_Node] = [
        ("ReduceMean", [INPUT, "axes"], "mean", {"keepdims": 0}),
        ("MatMul", ["mean", "weights"], "product", {}),
        ("Add", ["product", "bias"], OUTPUT, {}),
    ]
    constants = {
        "axes": np.array([0], np.int64),
        "weights": np.zeros((width, labels), np.float32),
        "bias": bias,
    }
    return _model(nodes, constants, width, labels)


def publish(
    store: HeadStore, bundle: Bundle, head: str, version: int, labels: list[str], model: bytes
) -> None:
    """Publishes a version of a head for the encoder of `bundle`, and has it served."""
    fields = {
        "id": head,
        "version": version,
        "kind": "sequence",
        "labels": labels,
        "encoder": {
            "name": bundle.manifest.name,
            "fingerprint": bundle.manifest.states_fingerprint,
            "width": bundle.manifest.encoder.dimension,
        },
    }
    with tempfile.TemporaryDirectory() as directory:
        write_head(Path(directory) / head, fields, model)
        store.publish(Path(directory) / head)


def _model(
    nodes: list[_Node],
    constants: dict[str, Any],
    width: int,
    labels: int,
) -> bytes:
    graph = helper.make_graph(
        [helper.make_node(kind, given, [made], **more) for kind, given, made, more in nodes],
        "head",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["tokens", width])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [labels])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", _OPSET)]
    made: onnx.ModelProto = helper.make_model(graph, opset_imports=opset, ir_version=_IR)
    serialised: bytes = made.SerializeToString()
    return serialised
