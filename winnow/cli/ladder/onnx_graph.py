"""Builds ONNX graphs of BERT encoders and heads. Their weights are random: speed is the same.

This module needs onnx, the `ladder` extra. It is imported only to create missing models.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from winnow.cli.ladder.steps import EncoderShape
from winnow.cli.ladder.texts import VOCABULARY

_OPSET, _IR = 17, 8
_POSITIONS, _TYPES, _LABELS = 512, 2, 150
_MASKED = -1e4
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class OnnxGraphBuilder:
    """Builds a graph node by node. Every value has a unique name."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._weights: list[Any] = []

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Adds a node, and returns the name of its output."""
        output = name or f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [output], output, **attributes))
        return output

    def constant(self, values: NDArray[Any]) -> str:
        """Adds a constant tensor."""
        name = f"constant_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(values, name))
        return name

    def number(self, value: float) -> str:
        """Adds a constant float32."""
        return self.constant(np.array(value, np.float32))

    def random(self, *shape: int) -> str:
        """Adds random weights, distributed as in the initialisation of BERT."""
        values = self._rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        return self.constant(values)

    def linear(self, value: str, width: int, outputs: int, name: str = "") -> str:
        """Adds a linear layer from `width` values to `outputs`."""
        product = self.node("MatMul", value, self.random(width, outputs))
        return self.node("Add", product, self.random(outputs), name=name)

    def layer_norm(self, value: str, width: int) -> str:
        """Adds layer normalisation."""
        scale, shift = np.ones(width, np.float32), np.zeros(width, np.float32)
        return self.node(
            "LayerNormalization", value, self.constant(scale), self.constant(shift), epsilon=1e-12
        )

    def gelu(self, value: str) -> str:
        """Adds BERT's GELU activation, computed by the error function."""
        scaled = self.node("Div", value, self.number(2**0.5))
        shifted = self.node("Add", self.node("Erf", scaled), self.number(1))
        product = self.node("Mul", value, shifted)
        return self.node("Mul", product, self.number(0.5))

    def model(self, inputs: Sequence[Any], outputs: Sequence[str]) -> Any:
        """Builds the model with these outputs; the runtime infers their shapes."""
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, "ladder", inputs, values, self._weights)
        opset = [helper.make_opsetid("", _OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=_IR)


def build_encoder(shape: EncoderShape, seed: int = 0) -> Any:
    """Builds an encoder: ids [1, tokens] to `states` [1, tokens, width], `logits` [1, labels]."""
    graph, width = OnnxGraphBuilder(seed), shape.width
    ids = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in _INPUTS
    ]
    mask = _mask(graph)
    states = _embedding(graph, width)
    for number in range(shape.layers):
        attended = graph.node("Add", states, _attention(graph, states, mask, shape))
        states = graph.layer_norm(attended, width)
        inner = graph.gelu(graph.linear(states, width, 4 * width))
        added = graph.node("Add", states, graph.linear(inner, 4 * width, width))
        last = number == shape.layers - 1
        states = graph.layer_norm(added, width)
        if last:
            states = graph.node("Identity", states, name="states")
    first = graph.node("Gather", states, graph.constant(np.array(0, np.int64)), axis=1)
    pooled = graph.node("Tanh", graph.linear(first, width, width))
    graph.linear(pooled, width, _LABELS, name="logits")
    return graph.model(ids, ["states", "logits"])


def build_head(width: int, seed: int = 0) -> Any:
    """Builds a head with mean pooling and a hidden layer: states [tokens, width] to `logits`."""
    graph = OnnxGraphBuilder(seed)
    states = helper.make_tensor_value_info("states", TensorProto.FLOAT, ["tokens", width])
    mean = graph.node("ReduceMean", "states", axes=[0], keepdims=1)
    hidden = graph.gelu(graph.linear(mean, width, width))
    graph.linear(hidden, width, _LABELS, name="logits")
    return graph.model([states], ["logits"])


def _embedding(graph: OnnxGraphBuilder, width: int) -> str:
    words = graph.node("Gather", graph.random(VOCABULARY, width), "input_ids")
    types = graph.node("Gather", graph.random(_TYPES, width), "token_type_ids")
    tokens = graph.node(
        "Gather", graph.node("Shape", "input_ids"), graph.constant(np.array([1], np.int64))
    )
    zero = graph.constant(np.array([0], np.int64))
    positions = graph.node("Slice", graph.random(_POSITIONS, width), zero, tokens)
    return graph.layer_norm(graph.node("Add", graph.node("Add", words, types), positions), width)


def _mask(graph: OnnxGraphBuilder) -> str:
    """Attention mask [1, 1, 1, tokens]: 0 for tokens, a large negative number for padding."""
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    padding = graph.node("Sub", graph.number(1), mask)
    masked = graph.node("Mul", padding, graph.number(_MASKED))
    return graph.node("Unsqueeze", masked, graph.constant(np.array([1, 2], np.int64)))


def _attention(graph: OnnxGraphBuilder, states: str, mask: str, shape: EncoderShape) -> str:
    width, count = shape.width, shape.attention_heads
    split = graph.constant(np.array([0, 0, count, width // count], np.int64))

    def project(order: list[int]) -> str:
        heads = graph.node("Reshape", graph.linear(states, width, width), split)
        return graph.node("Transpose", heads, perm=order)

    queries, keys = project([0, 2, 1, 3]), project([0, 2, 3, 1])
    root = graph.number((width // count) ** 0.5)
    scores = graph.node("Div", graph.node("MatMul", queries, keys), root)
    weights = graph.node("Softmax", graph.node("Add", scores, mask), axis=-1)
    mixed = graph.node("MatMul", weights, project([0, 2, 1, 3]))
    joined = graph.constant(np.array([0, 0, width], np.int64))
    merged = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
    return graph.linear(merged, width, width)
