"""Tests of exported readers against the classes of transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import LENGTHS, make, sequences, whole
from numpy.typing import NDArray
from torch import Tensor

from models.exporting.graph import Precision, write_graph
from models.exporting.layout import read_checkpoint
from models.exporting.parity import Probes
from models.exporting.reader import open_reader
from models.network.export import INPUTS, READER_OUTPUTS
from winnow.inference.onnx import OnnxSession

Logits = list[NDArray[np.float32]]


class Exported:
    """A reader's graph, run by the serving code."""

    def __init__(
        self, directory: Path, target: Path, precision: Precision = Precision.FP32
    ) -> None:
        checkpoint = read_checkpoint(directory)
        probes = Probes(checkpoint.vocabulary_size, checkpoint.max_tokens)
        self.fidelity = write_graph(
            open_reader(checkpoint), target, precision, probes, "the reader"
        )
        self._session = OnnxSession(target, list(READER_OUTPUTS))

    def __call__(self, ids: Tensor, mask: Tensor, types: Tensor) -> Logits:
        inputs = (values.numpy() for values in (ids, mask, types))
        return self._session.run(dict(zip(INPUTS, inputs, strict=True)))


def test_dpr_reads_as_its_own_class_does_where_no_separator_ends_the_passage(
    tmp_path: Path,
) -> None:
    """Winnow ends every sequence with one more token than DPR was trained on."""
    directory = make("dpr-reader", tmp_path / "r")
    exported, network = Exported(directory, tmp_path / "r.onnx"), whole("dpr-reader", directory)
    for length in LENGTHS:
        ids, mask, types = sequences(length)
        with torch.no_grad():
            expected = network(input_ids=ids[:, :-1], attention_mask=mask[:, :-1])
        start, end, relevance = exported(ids, mask, types)
        np.testing.assert_allclose(start[:, :-1], expected.start_logits, atol=1e-4)
        np.testing.assert_allclose(end[:, :-1], expected.end_logits, atol=1e-4)
        np.testing.assert_allclose(relevance, expected.relevance_logits, atol=1e-4)


@pytest.mark.parametrize("kind", ["bert-reader", "distilbert-reader"])
def test_a_span_reader_has_the_spans_of_its_class_and_the_lead_over_no_answer(
    tmp_path: Path, kind: str
) -> None:
    directory = make(kind, tmp_path / "r")
    exported, network = Exported(directory, tmp_path / "r.onnx"), whole(kind, directory)
    for length in LENGTHS:
        ids, mask, types = sequences(length)
        options = {"token_type_ids": types} if kind == "bert-reader" else {}
        with torch.no_grad():
            expected = network(input_ids=ids, attention_mask=mask, **options)
        start, end, relevance = exported(ids, mask, types)
        np.testing.assert_allclose(start, expected.start_logits, atol=1e-4)
        np.testing.assert_allclose(end, expected.end_logits, atol=1e-4)
        nothing = expected.start_logits[:, 0] + expected.end_logits[:, 0]
        np.testing.assert_allclose(relevance, -nothing, atol=1e-4)


@pytest.mark.parametrize("kind", ["dpr-reader", "distilbert-reader"])
def test_a_reader_without_token_types_ignores_them(tmp_path: Path, kind: str) -> None:
    exported = Exported(make(kind, tmp_path / "r"), tmp_path / "r.onnx")
    ids, mask, types = sequences(20)
    for one, other in zip(exported(ids, mask, types), exported(ids, mask, types * 0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_padding_changes_no_logit(tmp_path: Path) -> None:
    """Also where the last token is taken out of sight: it is the last attended one."""
    exported = Exported(make("dpr-reader", tmp_path / "r"), tmp_path / "r.onnx")
    ids, mask, types = sequences(12)
    plain = exported(ids, mask, types)
    wider = [torch.nn.functional.pad(values, (0, 5)) for values in (ids, mask, types)]
    padded = exported(*wider)
    for one, other in zip(plain, padded, strict=True):
        np.testing.assert_allclose(one, other[..., :12] if other.ndim > 1 else other, atol=1e-5)


@pytest.mark.parametrize("kind", ["dpr-reader", "bert-reader", "distilbert-reader"])
def test_an_int8_reader_is_similar_and_keeps_its_heads_in_float(tmp_path: Path, kind: str) -> None:
    import onnx

    directory = make(kind, tmp_path / "r")
    small = Exported(directory, tmp_path / "int8.onnx", Precision.INT8)
    assert 0 < small.fidelity.drift < 0.2
    nodes = onnx.load(str(tmp_path / "int8.onnx")).graph.node
    heads = [node for node in nodes if "/qa_outputs/" in node.name and "MatMul" in node.op_type]
    assert [node.op_type for node in heads] == ["MatMul"]
