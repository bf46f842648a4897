"""Saves and loads networks as float16 weights, with the configuration that they need."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from models.network.architecture import Encoder, Reader, freeze_embeddings, quiet
from models.network.neurons import resize_to_weights
from models.network.split_reader import SplitReader

ENCODER, READER, TEACHER = "encoder", "reader", "teacher"
_TABLE = "body.embeddings.word_embeddings.weight"
"""Training leaves it as it is, and all networks have the same one, but for rounding to int8."""
_ROUNDING = 0.005


def save_state(path: Path, state: Mapping[str, Tensor]) -> None:
    """Writes weights in float16, without the token embeddings."""
    half = {name: each.half().cpu() for name, each in state.items() if name != _TABLE}
    torch.save(half, path)


def save_networks(
    directory: Path, config: Mapping[str, object], states: Mapping[str, Mapping[str, Tensor]]
) -> None:
    """Writes networks by name, and their token embeddings once.

    Raises:
        ValueError: the networks have different token embeddings.

    """
    directory.mkdir(parents=True, exist_ok=True)
    tables = [state[_TABLE] for state in states.values()]
    if any((tables[0] - table).abs().max() > _ROUNDING for table in tables):
        raise ValueError("the networks have different token embeddings")
    torch.save(tables[0].half(), directory / "embeddings.pt")
    (directory / "config.json").write_text(json.dumps(config))
    for name, state in states.items():
        save_state(directory / f"{name}.pt", state)


def load_state(directory: Path, name: str) -> dict[str, Tensor]:
    """Reads the weights of a network in float32."""
    table = torch.load(directory / "embeddings.pt", weights_only=True)
    state = torch.load(directory / f"{name}.pt", weights_only=True)
    return {name: each.float() for name, each in {**state, _TABLE: table}.items()}


def load_encoder(directory: Path, device: torch.device, name: str = ENCODER) -> Encoder:
    """Returns an encoder with frozen token embeddings."""
    encoder = Encoder(_empty_body(directory))
    encoder.load_state_dict(load_state(directory, name))
    freeze_embeddings(encoder.body)
    return encoder.to(device).eval()


def load_reader(directory: Path, device: torch.device, name: str = TEACHER) -> Reader:
    """Returns a full cross-encoder."""
    state, reader = load_state(directory, name), Reader(_empty_body(directory))
    resize_to_weights(reader.body, state)
    reader.load_state_dict(state)
    freeze_embeddings(reader.body)
    return reader.to(device).eval()


def load_split_reader(directory: Path, device: torch.device, layers: int) -> SplitReader:
    """Returns a split reader with `layers` split layers."""
    return SplitReader(load_reader(directory, device, READER), layers).eval()


def _empty_body(directory: Path) -> BertModel:
    config = BertConfig(**json.loads((directory / "config.json").read_text()))
    with quiet():
        return BertModel(config, add_pooling_layer=False)
