"""Tests of checkpoints that cannot be exported, and of old layouts that can."""

from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import (
    TOKENS,
    change_config,
    make,
    sentence_layout,
    sequences,
    whole,
)
from damaged_files import flip_bit
from torch import Tensor

from models.exporting.bundle import CheckpointDirectories, ExportOptions, export_bundle
from models.exporting.encoder import (
    CheckpointEncoder,
    EncoderSide,
    choose_pooling,
    choose_similarity,
    open_encoder,
)
from models.exporting.files import CheckpointError, ParityError, require_as_downloaded
from models.exporting.graph import Precision, write_graph
from models.exporting.layout import read_checkpoint
from models.exporting.manifest import ExportNaming
from models.exporting.network import load_network, run_network
from models.exporting.parity import Probes, require_parity, require_weights
from models.exporting.reader import open_reader
from models.exporting.sentence import Pooling, Similarity
from models.network.export import ENCODER_OUTPUTS, export_batched
from winnow.files.opened import sha256

MEAN, COSINE = Pooling.MEAN, Similarity.COSINE


def opened(directory: Path, side: EncoderSide = EncoderSide.PASSAGE) -> CheckpointEncoder:
    return open_encoder(read_checkpoint(directory), side, MEAN, COSINE)


def attempt(sources: CheckpointDirectories, target: Path) -> None:
    export_bundle(
        sources,
        target,
        ExportOptions(),
        ExportNaming(
            name="n", version="1", licence="none", max_answer_tokens=10, no_answer_below=0.0
        ),
        print,
    )


def test_a_file_in_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a directory: name a directory in the"):
        read_checkpoint(tmp_path / "facebook" / "dpr-reader")


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot read .*config\.json: No such file"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(("text", "said"), [("{", "is not JSON"), ("[]", "holds a list")])
def test_a_damaged_configuration_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=said):
        read_checkpoint(tmp_path)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    directory = make("bert", tmp_path / "b")
    (directory / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"no model\.safetensors and no pytorch_model\.bin"):
        read_checkpoint(directory)


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    directory = make("bert", tmp_path / "b")
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(
        CheckpointError, match=r"safetensors cannot be loaded: .* download it again"
    ):
        opened(directory)


def test_weights_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    directory = make("bert", tmp_path / "b")
    network = whole("bert", directory)
    name = "encoder.layer.1.output.dense.bias"
    with torch.no_grad():
        network.get_parameter(name).fill_(float("inf"))
    network.save_pretrained(directory)
    with pytest.raises(
        CheckpointError, match=f"values that are not numbers in {name}: download it again"
    ):
        opened(directory)


def test_weights_altered_since_their_download_are_refused(tmp_path: Path) -> None:
    directory = make("bert", tmp_path / "b")
    weights = directory / "model.safetensors"
    record = directory / ".cache" / "huggingface" / "download" / "model.safetensors.metadata"
    record.parent.mkdir(parents=True)
    record.write_text(f"{'a' * 40}\n{sha256(weights)}\n1712656091.1\n")
    require_as_downloaded(directory, weights)
    flip_bit(weights)  # of the last weight: nothing but a checksum can tell
    with pytest.raises(
        CheckpointError, match=r"has SHA-256 .*, but the hub recorded .* download it again"
    ):
        attempt(CheckpointDirectories(directory, directory, directory), tmp_path / "out")


def test_a_download_without_a_sha256_is_accepted(tmp_path: Path) -> None:
    """Small files have one of git's."""
    weights = make("bert", tmp_path / "b") / "model.safetensors"
    record = weights.parent / ".cache" / "huggingface" / "download" / "model.safetensors.metadata"
    record.parent.mkdir(parents=True)
    record.write_text(f"{'a' * 40}\n{'b' * 40}\n1712656091.1\n")
    require_as_downloaded(weights.parent, weights)


def test_weights_altered_in_the_shared_cache_are_refused(tmp_path: Path) -> None:
    """There a file is a link to one that is named by its checksum."""
    weights = make("bert", tmp_path / "snapshots" / "revision") / "model.safetensors"
    blob = tmp_path / "blobs" / sha256(weights)
    blob.parent.mkdir()
    weights.rename(blob)
    weights.symlink_to(blob)
    require_as_downloaded(weights.parent, weights)
    flip_bit(blob)
    with pytest.raises(CheckpointError, match="but the hub recorded"):
        require_as_downloaded(weights.parent, weights)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"architectures": ["RobertaModel"], "model_type": "roberta"}, "RobertaModel of type rob"),
        ({"architectures": None, "model_type": "t5"}, r"\(none\) of type t5"),
        ({"architectures": None, "model_type": "dpr"}, r"\(none\) of type dpr"),
        ({"position_embedding_type": "relative_key"}, "positions are relative_key"),
        ({"is_decoder": True}, "is_decoder"),
    ],
)
def test_another_kind_of_network_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    directory = make("bert", tmp_path / "b")
    change_config(directory, **changes)
    with pytest.raises(CheckpointError, match=said):
        read_checkpoint(directory)


def test_weights_that_are_not_what_the_configuration_says_are_named(tmp_path: Path) -> None:
    directory = make("bert", tmp_path / "b")
    change_config(directory, intermediate_size=48)
    with pytest.raises(CheckpointError, match=r"intermediate\.dense\.bias \(32,\), .* more, which"):
        opened(directory)


def test_missing_weights_are_not_replaced_by_random_ones(tmp_path: Path) -> None:
    """transformers would fill what is missing with random numbers, and warn."""
    directory = make("bert", tmp_path / "b")
    change_config(directory, architectures=["BertForQuestionAnswering"])
    with pytest.raises(CheckpointError, match=r"lacks qa_outputs\.bias, qa_outputs\.weight, which"):
        open_reader(read_checkpoint(directory))


@pytest.mark.parametrize(
    ("kind", "side", "said"),
    [
        ("dpr-passage", EncoderSide.QUESTION, "encoding a question needs a DPRQuestionEncoder"),
        ("dpr-reader", EncoderSide.PASSAGE, "encoding a passage needs a DPRContextEncoder"),
        ("bert-reader", EncoderSide.QUESTION, "holds a reader"),
    ],
)
def test_a_network_in_another_role_is_refused(
    tmp_path: Path, kind: str, side: EncoderSide, said: str
) -> None:
    with pytest.raises(CheckpointError, match=said):
        opened(make(kind, tmp_path / "c"), side)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "dpr-question"])
def test_a_network_without_a_span_head_is_refused_as_a_reader(tmp_path: Path, kind: str) -> None:
    with pytest.raises(CheckpointError, match="which is not a reader: one of DPRReader, Bert"):
        open_reader(read_checkpoint(make(kind, tmp_path / "c")))


def test_encoders_of_different_width_are_refused(tmp_path: Path) -> None:
    places = [make(kind, tmp_path / kind) for kind in ("bert", "bert-wide", "bert-reader")]
    with pytest.raises(CheckpointError, match=r"vectors of 16 values, .* of 24: name two"):
        attempt(CheckpointDirectories(*places), tmp_path / "out")


def test_networks_that_are_too_short_for_a_passage_are_refused(tmp_path: Path) -> None:
    short = make("bert-reader", tmp_path / "short", max_position_embeddings=64)
    encoder = make("bert", tmp_path / "e")
    with pytest.raises(CheckpointError, match="takes 64 tokens, but at least 128 are needed"):
        attempt(CheckpointDirectories(encoder, encoder, short), tmp_path / "out")


def test_encoders_that_compare_or_pool_differently_are_refused(tmp_path: Path) -> None:
    dpr = read_checkpoint(make("dpr-question", tmp_path / "d"))
    bert = read_checkpoint(make("bert", tmp_path / "b"))
    with pytest.raises(CheckpointError, match=r"compares by dot, .* by cosine"):
        choose_similarity(dpr, bert, None)
    with pytest.raises(CheckpointError, match=r"pools by cls, .* by mean"):
        choose_pooling(dpr, bert, None)
    with pytest.raises(CheckpointError, match="DPR encoder, which pools by cls, not mean"):
        choose_pooling(dpr, dpr, MEAN)
    assert choose_similarity(dpr, bert, Similarity.DOT) is Similarity.DOT
    assert choose_pooling(dpr, bert, Pooling.CLS) is Pooling.CLS


@pytest.mark.parametrize(
    ("pooling", "extra", "said"),
    [
        ({"pooling_mode_max_tokens": True}, {}, "pools by pooling_mode_max_tokens: only one"),
        ({"pooling_mode": "lasttoken"}, {}, "pools by lasttoken: only one pooling, mean or cls"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, {}, "mean, cls: only"),
        ({"pooling_mode_mean_tokens": False}, {}, "pools by nothing"),
        ({"pooling_mode": "mean"}, {"modules": [("Dense", "3_Dense")]}, "has a module Dense"),
        ({"pooling_mode": "mean"}, {"similarity": "manhattan"}, "compares vectors by manhattan"),
    ],
)
def test_sentence_transformers_that_do_more_are_refused(
    tmp_path: Path, pooling: dict[str, Any], extra: dict[str, Any], said: str
) -> None:
    with pytest.raises(CheckpointError, match=said):
        read_checkpoint(sentence_layout(tmp_path / "s", pooling, **extra))


def test_settings_of_sentence_transformers_are_followed(tmp_path: Path) -> None:
    root = sentence_layout(tmp_path / "s", {"pooling_mode": "cls"}, similarity="dot")
    checkpoint = read_checkpoint(root)
    assert choose_pooling(checkpoint, checkpoint, None) is Pooling.CLS
    assert choose_similarity(checkpoint, checkpoint, None) is Similarity.DOT


class Altered(torch.nn.Module):
    """A network that is not the one that was exported."""

    def __init__(self, network: CheckpointEncoder) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        vectors: Tensor = self.network(ids, mask, types)
        return vectors + 0.01 * (ids.shape[1] > 100)


def test_a_graph_that_differs_from_its_network_is_refused(tmp_path: Path) -> None:
    """Also where it does so at some lengths only."""
    encoder = opened(make("bert", tmp_path / "b"))
    export_batched(encoder, tmp_path / "e.onnx", ENCODER_OUTPUTS, sequences(12))
    probes = Probes(TOKENS, 512)
    assert require_parity(encoder, tmp_path / "e.onnx", ENCODER_OUTPUTS, probes, "it") < 1e-4
    with pytest.raises(ParityError, match=r"of it differs from PyTorch by 0\.01 .* at 128 tokens"):
        require_parity(Altered(encoder), tmp_path / "e.onnx", ENCODER_OUTPUTS, probes, "it")


def test_a_graph_with_another_weight_is_refused(tmp_path: Path) -> None:
    """Also where no sequence that was tried has that word."""
    encoder = opened(make("bert", tmp_path / "b"))
    export_batched(encoder, tmp_path / "e.onnx", ENCODER_OUTPUTS, sequences(12))
    require_weights(encoder, tmp_path / "e.onnx", "it")
    with torch.no_grad():
        encoder.network.get_parameter("embeddings.word_embeddings.weight")[1099, 3] += 1e-3
    with pytest.raises(ParityError, match=r"has no weight equal to network\.embeddings\.word_emb"):
        require_weights(encoder, tmp_path / "e.onnx", "it")


def test_outputs_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    encoder = opened(make("bert", tmp_path / "b"))
    with torch.no_grad():
        encoder.network.get_parameter("embeddings.word_embeddings.weight").fill_(float("nan"))
    with pytest.raises(ParityError, match="differs from PyTorch by nan in embedding"):
        write_graph(encoder, tmp_path / "e.onnx", Precision.FP32, Probes(TOKENS, 512), "it")


def test_int8_that_changes_outputs_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.exporting.graph.MAX_DRIFT", 1e-6)
    encoder = opened(make("bert", tmp_path / "b"))
    with pytest.raises(
        ParityError, match=r"int8 changes the outputs of it .* use --precision fp32"
    ):
        write_graph(encoder, tmp_path / "e.onnx", Precision.INT8, Probes(TOKENS, 512), "it")


def test_a_network_that_cannot_be_traced_is_refused(tmp_path: Path) -> None:
    """DPR's class itself cannot run a reader whose encoder projects."""
    reader = open_reader(read_checkpoint(make("dpr-reader", tmp_path / "r", projection_dim=8)))
    with pytest.raises(ParityError, match="it cannot be exported"):
        write_graph(reader, tmp_path / "r.onnx", Precision.FP32, Probes(TOKENS, 512), "it")


def test_old_checkpoints_of_the_hub_are_accepted(tmp_path: Path) -> None:
    """Pickled weights, the layer norms' old names, a pooler and positions nobody needs."""
    directory = make("dpr-question", tmp_path / "d")
    network = whole("dpr-question", directory)
    weights = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta"): value
        for name, value in network.state_dict().items()
    }
    prefix = "question_encoder.bert_model"
    assert all(name.startswith(prefix) for name in weights)
    weights[f"{prefix}.pooler.dense.weight"] = torch.zeros(16, 16)
    weights[f"{prefix}.embeddings.position_ids"] = torch.arange(512).unsqueeze(0)
    torch.save(weights, directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    found = load_network(read_checkpoint(directory), type(network))
    for name, value in network.state_dict().items():
        assert torch.equal(found.state_dict()[name], value), name


def test_a_configuration_without_class_and_type_is_read_as_bert(tmp_path: Path) -> None:
    """As the first conversions of Google's checkpoints, with the heads of their pretraining."""
    directory = make("bert", tmp_path / "b")
    change_config(directory, architectures=None, model_type=None)
    network = whole("bert", make("bert", tmp_path / "same"))
    weights = {f"bert.{name}": value for name, value in network.state_dict().items()}
    torch.save({**weights, "cls.predictions.bias": torch.zeros(TOKENS)}, directory / "weights")
    (directory / "weights").rename(directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    encoder = opened(directory)
    ids, mask, types = sequences(9)
    with torch.no_grad():
        expected = network(input_ids=ids, attention_mask=mask, token_type_ids=types)
        found = run_network(encoder.network, ids, mask, types)
    assert torch.allclose(found.last_hidden_state, expected.last_hidden_state, atol=1e-5)


def test_weights_in_half_precision_are_loaded_in_single(tmp_path: Path) -> None:
    directory = make("bert", tmp_path / "b")
    network = whole("bert", directory)
    torch.nn.Module.half(network)
    network.save_pretrained(directory)
    assert {p.dtype for p in opened(directory).parameters()} == {torch.float32}
