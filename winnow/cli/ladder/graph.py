"""ONNX graphs of BERT encoders and of heads. Random weights are as fast as trained ones.

It needs the `ladder` extra, the package onnx, and is imported only where models are made.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from winnow.cli.ladder.steps import EncoderShape
from winnow.cli.ladder.texts import VOCABULARY

_OPSET, _IR = 17, 8
_POSITIONS, _TYPES, _LABELS = 512, 2, 150
_MASKED = -1e4
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Graph:
    """A graph that is built node by node; every value has a unique name."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
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
        """Adds weights as BERT is initialised."""
        values = self._chance.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        return self.constant(values)

    def linear(self, value: str, width: int, into: int, name: str = "") -> str:
        """A layer from `width` values to `into`."""
        product = self.node("MatMul", value, self.random(width, into))
        return self.node("Add", product, self.random(into), name=name)

    def normalised(self, value: str, width: int) -> str:
        """Adds layer normalisation."""
        scale, shift = np.ones(width, np.float32), np.zeros(width, np.float32)
        return self.node(
            "LayerNormalization", value, self.constant(scale), self.constant(shift), epsilon=1e-12
        )

    def gelu(self, value: str) -> str:
        """Adds BERT's gelu, by the error function."""
        scaled = self.node("Div", value, self.number(2**0.5))
        grown = self.node("Add", self.node("Erf", scaled), self.number(1))
        product = self.node("Mul", value, grown)
        return self.node("Mul", product, self.number(0.5))

    def model(self, inputs: Sequence[Any], outputs: Sequence[str]) -> Any:
        """The model with these outputs; the runtime infers their shapes."""
        named = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, "ladder", inputs, named, self._weights)
        opset = [helper.make_opsetid("", _OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=_IR)


def encoder(shape: EncoderShape, seed: int = 0) -> Any:
    """An encoder: token ids [1, tokens] to `states` [1, tokens, width], `logits` [1, labels]."""
    graph, width = Graph(seed), shape.width
    ids = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in _INPUTS
    ]
    mask = _mask(graph)
    states = _embedded(graph, width)
    for number in range(shape.layers):
        attended = graph.node("Add", states, _attention(graph, states, mask, shape))
        states = graph.normalised(attended, width)
        inner = graph.gelu(graph.linear(states, width, 4 * width))
        added = graph.node("Add", states, graph.linear(inner, 4 * width, width))
        last = number == shape.layers - 1
        states = graph.normalised(added, width)
        if last:
            states = graph.node("Identity", states, name="states")
    first = graph.node("Gather", states, graph.constant(np.array(0, np.int64)), axis=1)
    pooled = graph.node("Tanh", graph.linear(first, width, width))
    graph.linear(pooled, width, _LABELS, name="logits")
    return graph.model(ids, ["states", "logits"])


def head(width: int, seed: int = 0) -> Any:
    """A head: states [tokens, width] to `logits` [labels], by mean pooling and a hidden layer."""
    graph = Graph(seed)
    states = helper.make_tensor_value_info("states", TensorProto.FLOAT, ["tokens", width])
    mean = graph.node("ReduceMean", "states", axes=[0], keepdims=1)
    hidden = graph.gelu(graph.linear(mean, width, width))
    graph.linear(hidden, width, _LABELS, name="logits")
    return graph.model([states], ["logits"])


def _embedded(graph: Graph, width: int) -> str:
    words = graph.node("Gather", graph.random(VOCABULARY, width), "input_ids")
    types = graph.node("Gather", graph.random(_TYPES, width), "token_type_ids")
    tokens = graph.node(
        "Gather", graph.node("Shape", "input_ids"), graph.constant(np.array([1], np.int64))
    )
    zero = graph.constant(np.array([0], np.int64))
    places = graph.node("Slice", graph.random(_POSITIONS, width), zero, tokens)
    return graph.normalised(graph.node("Add", graph.node("Add", words, types), places), width)


def _mask(graph: Graph) -> str:
    """[1, 1, 1, tokens]: zero for tokens, a large negative number for padding."""
    given = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    missing = graph.node("Sub", graph.number(1), given)
    masked = graph.node("Mul", missing, graph.number(_MASKED))
    return graph.node("Unsqueeze", masked, graph.constant(np.array([1, 2], np.int64)))


def _attention(graph: Graph, states: str, mask: str, shape: EncoderShape) -> str:
    width, heads = shape.width, shape.attention
    split = graph.constant(np.array([0, 0, heads, width // heads], np.int64))

    def part(order: list[int]) -> str:
        made = graph.node("Reshape", graph.linear(states, width, width), split)
        return graph.node("Transpose", made, perm=order)

    queries, keys = part([0, 2, 1, 3]), part([0, 2, 3, 1])
    root = graph.number((width // heads) ** 0.5)
    likeness = graph.node("Div", graph.node("MatMul", queries, keys), root)
    weights = graph.node("Softmax", graph.node("Add", likeness, mask), axis=-1)
    mixed = graph.node("MatMul", weights, part([0, 2, 1, 3]))
    joined = graph.constant(np.array([0, 0, width], np.int64))
    merged = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
    return graph.linear(merged, width, width)


def save(model: Any, path: str) -> None:
    """Writes a model."""
    onnx.save(model, path)
