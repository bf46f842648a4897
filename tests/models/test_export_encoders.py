"""Tests of exported encoders against the classes of transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import LENGTHS, TOKENS, WIDTH, make, sentence_layout, sequences, unit, whole
from numpy.typing import NDArray

from models.exporting.comparison import PassageProductTransform, norm_bound
from models.exporting.encoder import CheckpointEncoder, EncoderSide, open_encoder
from models.exporting.graph import Precision, write_graph
from models.exporting.layout import read_checkpoint
from models.exporting.network import find_body
from models.exporting.parity import Probes
from models.exporting.sentence import Pooling, Similarity
from models.network.export import ENCODER_OUTPUTS, INPUTS
from winnow.content_node.shard.nearest import ExactIndex
from winnow.inference.onnx import OnnxSession

Vector = NDArray[np.float32]


class Exported:
    """An encoder's graph, run by the serving code."""

    def __init__(
        self,
        directory: Path,
        target: Path,
        side: EncoderSide = EncoderSide.PASSAGE,
        pooling: Pooling = Pooling.MEAN,
        similarity: Similarity = Similarity.COSINE,
        precision: Precision = Precision.FP32,
    ) -> None:
        checkpoint = read_checkpoint(directory)
        self.network: CheckpointEncoder = open_encoder(checkpoint, side, pooling, similarity)
        probes = Probes(checkpoint.vocabulary_size, checkpoint.max_tokens)
        self.fidelity = write_graph(self.network, target, precision, probes, "the encoder")
        self._session = OnnxSession(target, list(ENCODER_OUTPUTS))

    def __call__(self, length: int) -> Vector:
        inputs = (values.numpy() for values in sequences(length))
        found: Vector = self._session.run(dict(zip(INPUTS, inputs, strict=True)))[0][0]
        return found


def states(kind: str, directory: Path, length: int) -> Vector:
    """What transformers' class says of every token, float32 [tokens, width]."""
    ids, mask, types = sequences(length)
    options = {} if kind == "distilbert" else {"token_type_ids": types}
    with torch.no_grad():
        output = whole(kind, directory)(input_ids=ids, attention_mask=mask, **options)
    found: Vector = output.last_hidden_state[0].numpy()
    return found


def pooled(network: torch.nn.Module, length: int) -> Vector:
    """What DPR's class says of a sequence, float32 [width]."""
    ids, mask, types = sequences(length)
    with torch.no_grad():
        output = network(input_ids=ids, attention_mask=mask, token_type_ids=types)
    found: Vector = output.pooler_output[0].numpy()
    return found


@pytest.mark.parametrize("pooling", list(Pooling))
@pytest.mark.parametrize("kind", ["bert", "bert-wide", "distilbert"])
def test_vectors_equal_those_of_transformers(tmp_path: Path, kind: str, pooling: Pooling) -> None:
    directory = make(kind, tmp_path / kind)
    exported = Exported(directory, tmp_path / "e.onnx", pooling=pooling)
    for length in LENGTHS:
        found = states(kind, directory, length)
        expected = unit(found[0] if pooling is Pooling.CLS else found.mean(0))
        np.testing.assert_allclose(exported(length), expected, atol=2e-5)


def test_a_network_with_one_token_type_ignores_token_types(tmp_path: Path) -> None:
    directory = make("bert-one-type", tmp_path / "b")
    exported = Exported(directory, tmp_path / "e.onnx")
    ids, mask, types = sequences(7)
    with torch.no_grad():
        output = whole("bert-one-type", directory)(
            input_ids=ids, attention_mask=mask, token_type_ids=types * 0
        )
    expected = unit(output.last_hidden_state[0].mean(0).numpy())
    np.testing.assert_allclose(exported(7), expected, atol=2e-5)


@pytest.mark.parametrize("where", ["", "0_Transformer"])
def test_the_transformer_is_found_in_a_sentence_transformers_directory(
    tmp_path: Path, where: str
) -> None:
    root = sentence_layout(tmp_path / "minilm", {"pooling_mode_mean_tokens": True}, where)
    checkpoint = read_checkpoint(root)
    assert checkpoint.settings.pooling is Pooling.MEAN
    assert checkpoint.max_tokens == 200
    exported = Exported(root, tmp_path / "e.onnx")
    expected = unit(states("bert", root / where, 9).mean(0))
    np.testing.assert_allclose(exported(9), expected, atol=2e-5)


@pytest.mark.parametrize("projected", ["", "-projected"])
def test_dpr_keeps_the_order_of_inner_products(tmp_path: Path, projected: str) -> None:
    """The index compares by Euclidean distance, DPR by inner product: one more coordinate makes
    the first the second, for vectors of any length.
    """
    kinds = {side: f"dpr-{side}{projected}" for side in EncoderSide}
    places = {side: make(kind, tmp_path / kind) for side, kind in kinds.items()}
    asked, found = (
        Exported(places[side], tmp_path / f"{side}.onnx", side, Pooling.CLS, Similarity.DOT)
        for side in EncoderSide
    )
    theirs = {side: whole(kind, places[side]) for side, kind in kinds.items()}
    lengths = list(range(2, 26))
    passages = np.stack([found(length) for length in lengths])
    exact = np.stack([pooled(theirs[EncoderSide.PASSAGE], length) for length in lengths])
    assert np.linalg.norm(exact, axis=1).std() > 0.05, "norms must differ to prove anything"
    np.testing.assert_allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)
    transform = found.network.transform
    assert isinstance(transform, PassageProductTransform)
    index = ExactIndex(passages)
    for length in (2, 5, 20):
        question = asked(length)
        raw = pooled(theirs[EncoderSide.QUESTION], length)
        products = exact @ raw
        rows = [row for row, _ in index.search(question, len(lengths))]
        assert rows == np.argsort(-products).tolist()
        distances = ((passages - question) ** 2).sum(1)
        expected = 2 - 2 * products / (np.linalg.norm(raw) * transform.bound)
        np.testing.assert_allclose(distances, expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "dpr-passage", "dpr-passage-projected"])
def test_no_vector_exceeds_the_norm_bound(tmp_path: Path, kind: str) -> None:
    directory = make(kind, tmp_path / kind)
    encoder = open_encoder(
        read_checkpoint(directory), EncoderSide.PASSAGE, Pooling.CLS, Similarity.DOT
    )
    assert isinstance(encoder.transform, PassageProductTransform)
    with torch.no_grad():
        max_norm = max(
            float(encoder.pooled(*sequences(length)).norm()) for length in range(2, 60, 6)
        )
    assert max_norm <= encoder.transform.bound
    assert encoder.transform.bound < 20 * max_norm


def test_the_bound_is_reached_where_one_coordinate_has_all_the_variance(tmp_path: Path) -> None:
    network = whole("bert", make("bert", tmp_path / "b"))
    inner = find_body(network)
    with torch.no_grad():
        last = inner.get_submodule("encoder.layer.1.output.LayerNorm")
        assert isinstance(last, torch.nn.LayerNorm)
        last.weight.fill_(1.0)
        last.bias.zero_()
        spike = torch.zeros(WIDTH)
        spike[3] = 100.0
        max_norm = float(last(spike).norm())
    assert norm_bound(inner, None) == pytest.approx(max_norm, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "similarity"), [("bert", Similarity.COSINE), ("dpr-passage", Similarity.DOT)]
)
def test_an_int8_encoder_is_smaller_and_similar(
    tmp_path: Path, kind: str, similarity: Similarity
) -> None:
    directory = make(kind, tmp_path / kind)
    exact, small = (
        Exported(
            directory,
            tmp_path / f"{precision}.onnx",
            pooling=Pooling.CLS,
            similarity=similarity,
            precision=precision,
        )
        for precision in Precision
    )
    assert 0 < small.fidelity.drift < 0.1
    assert exact.fidelity.drift == 0
    saved = [(tmp_path / f"{precision}.onnx").stat().st_size for precision in Precision]
    assert saved[1] < saved[0] - 2 * TOKENS * WIDTH
    for length in LENGTHS:
        assert float(exact(length) @ small(length)) > 0.98
        assert np.linalg.norm(small(length)) == pytest.approx(1, abs=1e-5)
