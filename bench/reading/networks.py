"""Writes the full cross-encoder of a bundle in the formats of other libraries.

    python -m bench.reading.networks BUNDLE DIRECTORY

All libraries then run the same network, a BERT of 6 layers as is usual for reranking on CPUs
(ms-marco-MiniLM-L-6-v2), and differ only in how they run it. Needs the extra `models`.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    PreTrainedModel,
)

from models.network.restoring import restore_weights
from winnow.bundle.bundle import Bundle, load_bundle

FLASHRANK = ("ms-marco-MiniLM-L-12-v2", "flashrank-MiniLM-L-12-v2_Q.onnx")
"""Directory and file of FlashRank's network, by which it finds a network without downloading it."""
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_SPECIAL_TOKENS = {
    f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")
}
_HEAD_WIDTH = 32
_SMALL = 1e-3
"""Scale at which the tanh of a pooler is linear within the accuracy of float32."""


def write_networks(bundle: Bundle, directory: Path) -> None:
    """Writes `reader`, `reranker` and FlashRank's directory into `directory`.

    Raises:
        DataError: the bundle's reader is not a full cross-encoder made by `winnow models`.

    """
    state = restore_weights(bundle.reader)
    body = {
        f"bert.{name.removeprefix('body.')}": each
        for name, each in state.items()
        if name.startswith("body.")
    }
    spans = {f"qa_outputs.{part}": state[f"span.{part}"] for part in ("weight", "bias")}
    reader = BertForQuestionAnswering(_config(state))
    _load(reader, body | spans)
    _save(reader, bundle.tokenizer, directory / "reader")

    # the relevance head has no pooler: its pooler passes the first token's state on
    width = state["relevance.weight"].shape[1]
    reranker = BertForSequenceClassification(_config(state, labels=1))
    _load(
        reranker,
        body
        | {
            "bert.pooler.dense.weight": _SMALL * torch.eye(width),
            "bert.pooler.dense.bias": torch.zeros(width),
            "classifier.weight": state["relevance.weight"] / _SMALL,
            "classifier.bias": state["relevance.bias"],
        },
    )
    _save(reranker, bundle.tokenizer, directory / "reranker")
    graph = directory / "reranker" / "onnx" / "model.onnx"
    graph.parent.mkdir()
    _export(reranker, graph)

    small = directory / FLASHRANK[0]
    small.mkdir()
    for path in (directory / "reranker").glob("*.json"):
        shutil.copyfile(path, small / path.name)
    (small / "special_tokens_map.json").write_text(json.dumps(_SPECIAL_TOKENS), encoding="utf-8")
    quantize_dynamic(graph, small / FLASHRANK[1], weight_type=QuantType.QInt8)


def _config(state: dict[str, Tensor], labels: int = 2) -> BertConfig:
    words = state["body.embeddings.word_embeddings.weight"]
    layers = {name.split(".")[3] for name in state if name.startswith("body.encoder.layer.")}
    config = BertConfig(
        vocab_size=words.shape[0],
        hidden_size=words.shape[1],
        num_hidden_layers=len(layers),
        num_attention_heads=words.shape[1] // _HEAD_WIDTH,
        intermediate_size=state["body.encoder.layer.0.intermediate.dense.weight"].shape[0],
    )
    config.num_labels = labels
    return config


def _load(network: PreTrainedModel, state: dict[str, Tensor]) -> None:
    missing, unknown = network.load_state_dict(state, strict=False)
    absent = [name for name in missing if not name.endswith("position_ids")]
    if absent or unknown:
        raise ValueError(f"the network needs {absent} and does not know {unknown}")
    network.eval()  # type: ignore[no-untyped-call]


def _save(network: PreTrainedModel, tokenizer: Path, directory: Path) -> None:
    network.save_pretrained(directory)
    shutil.copyfile(tokenizer, directory / "tokenizer.json")
    # written by hand, since versions of transformers cannot read each other's
    tokens = _SPECIAL_TOKENS | {
        "tokenizer_class": "BertTokenizerFast",
        "model_max_length": network.config.max_position_embeddings,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(tokens), encoding="utf-8")


def _export(network: PreTrainedModel, path: Path) -> None:
    example = tuple(torch.ones(1, 8, dtype=torch.int64) for _ in _INPUTS)
    axes = {0: "batch", 1: "tokens"}
    torch.onnx.export(
        network,
        example,
        str(path),
        input_names=list(_INPUTS),
        output_names=["logits"],
        dynamic_axes={**dict.fromkeys(_INPUTS, axes), "logits": {0: "batch"}},
        dynamo=False,
    )


if __name__ == "__main__":
    write_networks(load_bundle(Path(sys.argv[1])), Path(sys.argv[2]))
