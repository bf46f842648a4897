"""Tiny heads with known predictions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from winnow.heads.manifest import INPUT, OUTPUT
from winnow.heads.writing import write_head

WIDTH = 8
FINGERPRINT = "0123456789abcdef"
LABELS = ("greeting", "weather", "music")
TOKEN_LABELS = ("O", "B-person", "I-person", "B-place", "I-place")


def small_head(
    directory: Path,
    head: str = "intent",
    version: int = 1,
    kind: str = "sequence",
    labels: Sequence[str] = (),
    width: int = WIDTH,
    fingerprint: str = FINGERPRINT,
    says: int | None = None,
    model: bytes | None = None,
    **fields: Any,
) -> Path:
    """Writes a valid head to `directory`, and returns the directory.

    Args:
        directory: directory of the head.
        head: id of the head.
        version: version of the head.
        kind: "sequence" or "token".
        labels: labels of the head; by default `LABELS` or `TOKEN_LABELS`.
        width: width of the token states.
        fingerprint: fingerprint of the encoder.
        says: index of the label that gets a logit of 5 for every text or token, while the others
            get 0. None for random weights, which depend on the version.
        model: the ONNX model; by default that of `small_model`.
        fields: more fields of the manifest, such as `threshold`, `multi_label` or `temperature`.

    """
    labels = tuple(labels) or (LABELS if kind == "sequence" else TOKEN_LABELS)
    made = model or small_model(kind, len(labels), width, says, seed=version)
    write_head(
        directory, head_fields(head, version, kind, labels, width, fingerprint, fields), made
    )
    return directory


def head_fields(
    head: str = "intent",
    version: int = 1,
    kind: str = "sequence",
    labels: Sequence[str] = LABELS,
    width: int = WIDTH,
    fingerprint: str = FINGERPRINT,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns the fields of a manifest, as `write_head` takes them."""
    return {
        "id": head,
        "version": version,
        "kind": kind,
        "labels": list(labels),
        "encoder": {"name": "small", "fingerprint": fingerprint, "width": width},
        **(more or {}),
    }


def small_model(
    kind: str, labels: int, width: int = WIDTH, says: int | None = None, seed: int = 0
) -> bytes:
    """Returns a linear layer over the mean of the states, or over each state of a token head."""
    random = np.random.default_rng(seed)
    weights = random.normal(0, 1, (width, labels)) if says is None else np.zeros((width, labels))
    bias = np.zeros(labels)
    if says is not None:
        bias[says] = 5.0
    pooled = helper.make_node("ReduceMean", [INPUT, "axes"], ["pooled"], keepdims=0)
    taken = "pooled" if kind == "sequence" else INPUT
    nodes = [pooled] if kind == "sequence" else []
    nodes += [
        helper.make_node("MatMul", [taken, "weights"], ["product"]),
        helper.make_node("Add", ["product", "bias"], [OUTPUT]),
    ]
    constants = {"weights": weights.astype(np.float32), "bias": bias.astype(np.float32)}
    if kind == "sequence":
        constants["axes"] = np.array([0], dtype=np.int64)
    shape: list[int | str] = [labels] if kind == "sequence" else ["tokens", labels]
    return model_of(nodes, constants, width, shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, ArrayLike],
    width: int,
    shape: Sequence[int | str],
) -> bytes:
    """Returns a serialised model from `states` to `logits` of the given shape."""
    graph = helper.make_graph(
        list(nodes),
        "head",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["tokens", width])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, list(shape))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    serialised: bytes = model.SerializeToString()
    return serialised
