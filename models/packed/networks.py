"""Saves and loads the networks of a pack: float16 weights with their configuration."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from models.network.architecture import Encoder, Reader, freeze_embeddings, quiet_transformers
from models.network.late_interaction import LateInteraction
from models.network.neurons import resize_to_weights
from models.network.split_reader import SplitReader

ENCODER, READER, TEACHER = "encoder", "reader", "teacher"
_CONFIG = "config.json"
_WORD_WEIGHT = "winnow_word_weight"
"""Key of the weight of matching words in the configuration."""


def save_networks(
    directory: Path,
    config: Mapping[str, object],
    weight_of_words: float,
    states: Mapping[str, Mapping[str, Tensor]],
) -> None:
    """Writes the weights `states` of networks by name, and a configuration without dropout."""
    directory.mkdir(parents=True, exist_ok=True)
    undropped = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    settings = {**config, **undropped, _WORD_WEIGHT: weight_of_words}
    (directory / _CONFIG).write_text(json.dumps(settings))
    for name, state in states.items():
        torch.save(
            {key: each.half() for key, each in state.items()}, _weights_file(directory, name)
        )


def word_weight(directory: Path) -> float:
    """Returns the squared distance that one unit of BM25 is worth in the networks' bundle."""
    return float(_read_config(directory)[_WORD_WEIGHT])


def load_encoder(directory: Path, device: torch.device) -> Encoder:
    """Returns the encoder with frozen embeddings."""
    encoder = Encoder(_empty_body(directory))
    encoder.load_state_dict(_load_state(directory, ENCODER))
    freeze_embeddings(encoder.body)
    return encoder.to(device).eval()


def load_reader(directory: Path, device: torch.device, name: str = TEACHER) -> Reader:
    """Returns a full cross-encoder with frozen embeddings."""
    state, reader = _load_state(directory, name), Reader(_empty_body(directory))
    resize_to_weights(reader.body, state)
    reader.load_state_dict(state)
    freeze_embeddings(reader.body)
    return reader.to(device).eval()


def load_split_reader(
    directory: Path, device: torch.device, layers: int, name: str = READER
) -> SplitReader:
    """Returns a split reader, whose first `layers` layers are split."""
    return SplitReader(load_reader(directory, device, name), layers).eval()


def save_projections(path: Path, projections: Sequence[LateInteraction]) -> None:
    """Writes projections with their layers and float16 weights."""
    saved = [
        {
            "layers": list(each.layers),
            **{name: weight.half().cpu() for name, weight in each.state_dict().items()},
        }
        for each in projections
    ]
    torch.save(saved, path)


def load_projections(path: Path) -> list[LateInteraction]:
    """Reads projections that `save_projections` wrote, or one from a `.npz` file of arrays."""
    if path.suffix == ".npz":
        return [_load_arrays(path)]
    return [_restore(saved) for saved in torch.load(path, weights_only=True)]


def _load_arrays(path: Path) -> LateInteraction:
    """Reads the arrays `layers`, `project`, `weigh`, `bias` and `scale` of a projection."""
    with np.load(path) as arrays:
        saved = {
            "project.weight": torch.tensor(arrays["project"]),
            "weigh.weight": torch.tensor(arrays["weigh"]).reshape(1, -1),
            "weigh.bias": torch.tensor(arrays["bias"]),
            "scale": torch.tensor(arrays["scale"]),
        }
        return _restore({"layers": arrays["layers"].tolist(), **saved})


def _restore(saved: dict[str, Any]) -> LateInteraction:
    layers = saved.pop("layers")
    values, inputs = saved["project.weight"].shape
    projection = LateInteraction(inputs // len(layers), values, layers)
    projection.load_state_dict({name: weight.float() for name, weight in saved.items()})
    return projection.eval()


def _load_state(directory: Path, name: str) -> dict[str, Tensor]:
    state = torch.load(_weights_file(directory, name), weights_only=True)
    return {key: each.float() for key, each in state.items()}


def _empty_body(directory: Path) -> BertModel:
    config = {key: each for key, each in _read_config(directory).items() if key != _WORD_WEIGHT}
    with quiet_transformers():
        return BertModel(BertConfig(**config), add_pooling_layer=False)


def _read_config(directory: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((directory / _CONFIG).read_text())
    return config


def _weights_file(directory: Path, name: str) -> Path:
    return directory / f"{name}.pt"
