"""Tests of exported graphs against PyTorch, at any length, alone and in a batch."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

from models.measuring.parity import largest_difference, mean_cosine
from models.network.architecture import Encoder, Reader, load_body
from models.network.export import (
    ENCODER_OUTPUTS,
    INPUTS,
    READER_OUTPUTS,
    export_graph,
    quantise_embeddings,
    quantise_graph,
)

TEXTS = ["who won the tour?", "word1 word2 word3 in the danube", "the", "where " * 60]


def network(weights: Path, kind: type[Encoder | Reader]) -> Encoder | Reader:
    torch.manual_seed(3)
    return kind(load_body(weights)).eval()


@pytest.mark.parametrize(
    ("kind", "outputs"), [(Encoder, ENCODER_OUTPUTS), (Reader, READER_OUTPUTS)]
)
def test_a_graph_agrees_with_pytorch(
    tiny_weights: Path, tmp_path: Path, kind: type[Encoder | Reader], outputs: tuple[str, ...]
) -> None:
    model, graph = network(tiny_weights, kind), tmp_path / "graph.onnx"
    export_graph(model, graph)
    tokenizer = tiny_weights / "tokenizer.json"
    assert largest_difference(model, graph, outputs, tokenizer, TEXTS) < 1e-4


def test_padding_changes_no_vector_and_vectors_have_length_one(
    tiny_weights: Path, tmp_path: Path
) -> None:
    graph = tmp_path / "encoder.onnx"
    export_graph(network(tiny_weights, Encoder), graph)
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])

    def run(ids: list[int], mask: list[int]) -> NDArray[np.float32]:
        values = [np.array([row], dtype=np.int64) for row in (ids, mask, [0] * len(ids))]
        found: NDArray[np.float32] = session.run(None, dict(zip(INPUTS, values, strict=True)))[0]
        return found

    plain, padded = run([2, 7, 8, 3], [1] * 4), run([2, 7, 8, 3, 0, 0], [1, 1, 1, 1, 0, 0])
    np.testing.assert_allclose(plain, padded, atol=1e-5)
    assert np.linalg.norm(plain[0]) == pytest.approx(1, abs=1e-5)


def test_an_int8_graph_is_similar_and_smaller(tiny_weights: Path, tmp_path: Path) -> None:
    exact, plain, small = (tmp_path / f"{name}.onnx" for name in ("exact", "plain", "small"))
    model = network(tiny_weights, Encoder)
    export_graph(model, exact)
    quantise_embeddings(model.body)
    export_graph(model, plain)
    quantise_graph(plain, small)
    assert mean_cosine(exact, small, tiny_weights / "tokenizer.json", TEXTS) > 0.99
    kinds = {tensor.type for tensor in onnxruntime.InferenceSession(str(small)).get_inputs()}
    assert kinds == {"tensor(int64)"}


def test_named_layers_stay_in_float(tiny_weights: Path, tmp_path: Path) -> None:

    plain, small = tmp_path / "plain.onnx", tmp_path / "small.onnx"
    export_graph(network(tiny_weights, Reader), plain)
    quantise_graph(plain, small, ["/span/MatMul"])
    kept = {node.name for node in onnx.load(str(small)).graph.node if node.op_type == "MatMul"}
    assert "/span/MatMul" in kept
