"""Tests of batches: a float encoder gives the same vectors, except for rounding."""

from pathlib import Path

import numpy as np
import pytest
from checkpoints import WIDTH, make

from models.exporting.encoder import EncoderSide, open_encoder
from models.exporting.graph import Precision, write_graph
from models.exporting.layout import read_checkpoint
from models.exporting.parity import Probes
from models.exporting.sentence import Pooling, Similarity
from models.network.export import ENCODER_OUTPUTS
from winnow.inference.encoder import Encoder
from winnow.inference.onnx import OnnxSession
from winnow.text.tokenizer import SpecialTokens


@pytest.mark.parametrize("pooling", list(Pooling))
@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_vectors_in_a_padded_run_are_those_of_single_runs(
    tmp_path: Path, kind: str, pooling: Pooling
) -> None:
    checkpoint = read_checkpoint(make(kind, tmp_path / kind))
    network = open_encoder(checkpoint, EncoderSide.QUESTION, pooling, Similarity.COSINE)
    probes = Probes(checkpoint.vocabulary_size, checkpoint.max_tokens)
    write_graph(network, tmp_path / "e.onnx", Precision.FP32, probes, "the encoder")
    session = OnnxSession(tmp_path / "e.onnx", list(ENCODER_OUTPUTS))
    encoder = Encoder(session, SpecialTokens(2, 3), WIDTH)
    texts = [list(range(5, 5 + length)) for length in (1, 0, 40, 7, 12)]
    for ids, done in zip(texts, encoder.encode_batch(texts), strict=True):
        np.testing.assert_allclose(done.vector, encoder.question(ids), atol=2e-6)
