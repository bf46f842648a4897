"""Tiny random checkpoints of transformers' classes, in the layout of the Hugging Face hub."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertModel,
    DistilBertConfig,
    DistilBertForQuestionAnswering,
    DistilBertModel,
    DPRConfig,
    DPRContextEncoder,
    DPRQuestionEncoder,
    DPRReader,
    PreTrainedModel,
)

WIDTH, TOKENS = 16, 1100
LENGTHS = (2, 3, 7, 40, 200)
_SMALL = {
    "vocab_size": TOKENS,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
_KINDS: dict[str, tuple[type[PreTrainedModel], Any, dict[str, Any]]] = {
    "dpr-question": (DPRQuestionEncoder, DPRConfig, _SMALL),
    "dpr-passage": (DPRContextEncoder, DPRConfig, _SMALL),
    "dpr-reader": (DPRReader, DPRConfig, _SMALL),
    "dpr-question-projected": (DPRQuestionEncoder, DPRConfig, {**_SMALL, "projection_dim": 8}),
    "dpr-passage-projected": (DPRContextEncoder, DPRConfig, {**_SMALL, "projection_dim": 8}),
    "bert": (BertModel, BertConfig, _SMALL),
    "bert-wide": (BertModel, BertConfig, {**_SMALL, "hidden_size": 24, "num_hidden_layers": 3}),
    "bert-one-type": (BertModel, BertConfig, {**_SMALL, "type_vocab_size": 1}),
    "bert-reader": (BertForQuestionAnswering, BertConfig, _SMALL),
    "distilbert": (
        DistilBertModel,
        DistilBertConfig,
        {"vocab_size": TOKENS, "dim": WIDTH, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    ),
    "distilbert-reader": (
        DistilBertForQuestionAnswering,
        DistilBertConfig,
        {"vocab_size": TOKENS, "dim": WIDTH, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    ),
}
WORDS = ["who", "won", "the", "tour", "danube", "rises", "in", "black", "forest", "froome", "##s"]


def make(kind: str, directory: Path, **config: Any) -> Path:
    """Saves a checkpoint of `kind` with `vocab.txt`.

    Every weight is random, so that losing one changes outputs.
    """
    network_class, config_class, sizes = _KINDS[kind]
    torch.manual_seed(len(kind))
    network = network_class(config_class(**{**sizes, **config}))
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.normal_(1.0 if "norm.weight" in name.lower() else 0.0, 0.3)
    network.save_pretrained(directory)
    write_words(directory)
    return directory


def whole(kind: str, directory: Path) -> PreTrainedModel:
    """Loads a checkpoint with transformers."""
    network: PreTrainedModel = _KINDS[kind][0].from_pretrained(directory)
    return network


def write_words(directory: Path, tokens: int = TOKENS) -> None:
    """Writes `vocab.txt` with every letter, alone and within words, so that no text is unknown."""
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    words += [f"##{letter}" for letter in letters] + WORDS
    words = list(dict.fromkeys(words))
    words += [f"[unused{number}]" for number in range(tokens - len(words))]
    (directory / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def sequences(length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns random ids, a mask of ones, and token types of a pair, each int64 [1, length]."""
    chance = torch.Generator().manual_seed(length)
    ids = torch.randint(0, TOKENS, (1, length), generator=chance)
    types = (torch.arange(length) >= length // 2).long().unsqueeze(0)
    return ids, torch.ones_like(ids), types


def sentence_layout(root: Path, pooling: dict[str, Any], where: str = "", **extra: Any) -> Path:
    """Writes a sentence-transformers directory of a BERT, with the transformer in `where`."""
    make("bert", root / where)
    modules = [("Transformer", where), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    modules += extra.get("modules", [])
    write_json(
        root / "modules.json",
        [
            {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for n, (kind, path) in enumerate(modules)
        ],
    )
    write_json(root / "1_Pooling" / "config.json", {"word_embedding_dimension": WIDTH, **pooling})
    write_json(root / where / "sentence_bert_config.json", {"max_seq_length": 200})
    write_json(
        root / "config_sentence_transformers.json",
        {"similarity_fn_name": extra.get("similarity")},
    )
    return root


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def change_config(directory: Path, **changes: Any) -> None:
    """Changes `config.json`; None removes a key."""
    path = directory / "config.json"
    config = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    write_json(path, {key: value for key, value in config.items() if value is not None})


def unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vector / np.linalg.norm(vector)
    return found
