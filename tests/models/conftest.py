"""Tiny models with random weights and their tokenizer, for tests that take seconds."""

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import needs
import pytest

WORDS = [f"word{n}" for n in range(40)]
WORDS += ["who", "what", "where", "won", "rises", "in", "the", "of", "danube", "tour"]


class _Unavailable(pytest.Module):
    """A test file that cannot be imported without torch."""

    def collect(self) -> list[Any]:
        pytest.skip(needs.TORCH, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Any:
    """Skips, with a reason, what needs torch where it is not installed."""
    if find_spec("torch") is None:
        return _Unavailable.from_parent(parent, path=module_path)
    return None


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """What a test draws from torch is the same in every run, after any other test."""
    import torch

    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tiny_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in the Hugging Face layout: a BERT of two layers, 16 wide, random by seed."""
    import torch
    from transformers import BertConfig, BertModel

    # tiny tensors: threads would spend their time waiting for one another
    torch.set_num_threads(1)
    directory = tmp_path_factory.mktemp("tiny")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefgh,.?0123456789"]
    # tracing starts from token ids of about a thousand
    vocabulary += [f"[unused{n}]" for n in range(1100 - len(vocabulary))]
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=512,
    )
    torch.manual_seed(0)
    BertModel(config, add_pooling_layer=False).save_pretrained(directory)
    write_tokenizer(directory / "tokenizer.json", vocabulary)
    return directory


@pytest.fixture
def weights(tiny_weights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as what the commands of `winnow models` accept."""
    digest = hashlib.sha256((tiny_weights / "model.safetensors").read_bytes()).hexdigest()
    monkeypatch.setattr("models.network.weights.MINILM_SHA256", digest)
    return tiny_weights


def write_tokenizer(path: Path, vocabulary: list[str]) -> None:
    """A lower-casing word tokenizer with BERT's template, in the Hugging Face format."""
    from tokenizers import (
        Tokenizer,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    places = {word: number for number, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(places, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", places["[CLS]"]), ("[SEP]", places["[SEP]"])],
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    path.write_text(json.dumps(json.loads(tokenizer.to_str())), encoding="utf-8")
