"""Makes synthetic heads.

A head has random weights in the shape of a trained head, or always predicts the same label.
"""

import functools
import logging
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from winnow.bundle import Bundle
from winnow.heads.manifest import INPUT, OUTPUT
from winnow.heads.store import HeadStore, open_store
from winnow.heads.writing import write_head
from winnow.packaged import generated_directory
from winnow.telemetry.progress import StageProgress

LABELS = 20
"""Number of labels of a head. Heads in use have ten or twenty."""
STORE_SIZE = 1_000
"""Number of heads in the store."""
_STORE_FORMAT = 2
_QUERIES, _HIDDEN = 4, 160
_OPSET, _IR = 20, 9
_Node = tuple[str, list[str], str, dict[str, Any]]
"""An ONNX node: operator, inputs, output and attributes."""


@functools.cache
def trained_shape_model(width: int) -> bytes:
    """Returns an int8 ONNX model with random weights, of the shape that `train-head` makes.

    The model computes weighted means of the token states, and one hidden layer.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415 (slow)

    rng = np.random.default_rng(0)
    sizes = {
        "look": (width, width // 6),
        "attend": (width // 6, _QUERIES),
        "hide": (_QUERIES * width, _HIDDEN),
        "label": (_HIDDEN, LABELS),
    }
    weights = {name: rng.normal(0, 0.05, size).astype(np.float32) for name, size in sizes.items()}
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
    float_model = _model(nodes, {**weights, **shapes}, width, LABELS)
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory) / "whole.onnx", Path(directory) / "int8.onnx"
        source.write_bytes(float_model)
        # ONNX Runtime's warning recommends a preprocessing step that gains nothing here
        logging.getLogger().setLevel(logging.ERROR)
        quantize_dynamic(
            str(source),
            str(target),
            per_channel=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul"],
            extra_options={"MatMulConstBOnly": True},
        )
        return target.read_bytes()


def constant_model(width: int, labels: int, label: int) -> bytes:
    """Returns an ONNX model that gives every text the label with index `label`."""
    bias = np.zeros(labels, np.float32)
    bias[label] = 5.0
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


def publish_head(
    store: HeadStore, bundle: Bundle, head: str, version: int, labels: list[str], model: bytes
) -> None:
    """Publishes a version of a head for the encoder of `bundle`."""
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


def _model(nodes: list[_Node], constants: dict[str, Any], width: int, labels: int) -> bytes:
    graph = helper.make_graph(
        [
            helper.make_node(operator, inputs, [output], **attributes)
            for operator, inputs, output, attributes in nodes
        ],
        "head",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["tokens", width])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [labels])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", _OPSET)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opset, ir_version=_IR)
    serialised: bytes = model.SerializeToString()
    return serialised


def head_ids(number: int = STORE_SIZE) -> list[str]:
    """Returns the ids of the first `number` heads in the store."""
    return [f"tenant-{index:04}" for index in range(number)]


def open_store_of_many(bundle: Bundle, progress: StageProgress) -> Path:
    """Returns the directory of a store with `STORE_SIZE` heads, which the first call creates."""
    name = f"{bundle.manifest.states_fingerprint}-{STORE_SIZE}-{_STORE_FORMAT}"
    directory = generated_directory() / "bench-heads" / name
    store = open_store(directory)
    if directory.is_dir() and len(store.ids()) == STORE_SIZE:
        return directory
    shutil.rmtree(directory, ignore_errors=True)  # an unfinished store
    model = trained_shape_model(bundle.manifest.encoder.dimension)
    labels = [f"label-{number}" for number in range(LABELS)]
    progress.start(f"publishing {STORE_SIZE} heads", STORE_SIZE)
    for head in head_ids():
        publish_head(store, bundle, head, 1, labels, model)
        progress.advance()
    return directory
