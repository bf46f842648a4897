"""Reads the settings of a sentence-transformers directory: `modules.json` and its files."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from models.exporting.files import CheckpointError, read_json, read_json_object

MODULES = "modules.json"
_SUPPORTED_MODULES = {"Transformer", "Pooling", "Normalize"}
_SIMILARITY_FILE = "config_sentence_transformers.json"
_LENGTH_FILE = "sentence_bert_config.json"
_FLAG_PREFIX = "pooling_mode_"
_FLAGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


class Pooling(StrEnum):
    """Pooling of the states of a sequence into one vector."""

    MEAN = "mean"
    """The mean over the attended tokens."""
    CLS = "cls"
    """The state of the first token."""


class Similarity(StrEnum):
    """Similarity measure of question vectors and passage vectors."""

    COSINE = "cosine"
    DOT = "dot"
    """The inner product, as in DPR."""


@dataclass(frozen=True, slots=True)
class SentenceSettings:
    """Settings of a sentence-transformers directory. A missing setting is None."""

    transformer: Path
    """Directory of `config.json` and the weights."""
    pooling: Pooling | None = None
    similarity: Similarity | None = None
    max_tokens: int | None = None
    """Longest sequence that the network was trained on, special tokens included."""


def read_sentence_settings(directory: Path) -> SentenceSettings:
    """Reads the settings of `directory`, which may be a plain transformer without `modules.json`.

    Raises:
        CheckpointError: the directory has a module or a pooling that Winnow does not support.

    """
    if not (directory / MODULES).is_file():
        return SentenceSettings(directory)
    modules = {
        _module_class(each): directory / each.get("path", "") for each in _read_modules(directory)
    }
    if unknown := set(modules) - _SUPPORTED_MODULES:
        raise CheckpointError(
            f"{directory / MODULES} has a module {', '.join(sorted(unknown))}: only "
            f"{', '.join(sorted(_SUPPORTED_MODULES))} can be turned into a bundle"
        )
    if "Transformer" not in modules or "Pooling" not in modules:
        raise CheckpointError(f"{directory / MODULES} lacks a Transformer or a Pooling module")
    transformer = modules["Transformer"]
    return SentenceSettings(
        transformer,
        _read_pooling(modules["Pooling"] / "config.json"),
        _read_similarity(directory / _SIMILARITY_FILE),
        _read_max_tokens(transformer / _LENGTH_FILE),
    )


def _read_modules(directory: Path) -> list[dict[str, Any]]:
    modules = read_json(directory / MODULES)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise CheckpointError(f"{directory / MODULES} is not a list of modules")
    return modules


def _module_class(module: dict[str, Any]) -> str:
    """Returns Pooling for `sentence_transformers.models.Pooling`."""
    return str(module.get("type", "")).rpartition(".")[2]


def _read_pooling(path: Path) -> Pooling:
    config = read_json_object(path)
    # newer files have one name, older files have a flag for each pooling
    flags = [name for key, name in _FLAGS.items() if config.get(key)]
    flags += [
        key
        for key, on in config.items()
        if key.startswith(_FLAG_PREFIX) and on and key not in _FLAGS
    ]
    chosen = [config["pooling_mode"]] if "pooling_mode" in config else flags
    if len(chosen) != 1 or chosen[0] not in set(Pooling):
        raise CheckpointError(
            f"{path} pools by {', '.join(map(str, chosen)) or 'nothing'}: only one pooling, "
            f"{' or '.join(Pooling)}, is supported"
        )
    return Pooling(chosen[0])


def _read_similarity(path: Path) -> Similarity | None:
    name = read_json_object(path).get("similarity_fn_name") if path.is_file() else None
    if name is not None and name not in set(Similarity):
        raise CheckpointError(
            f"{path} compares vectors by {name}: only {' or '.join(Similarity)} is supported"
        )
    return None if name is None else Similarity(name)


def _read_max_tokens(path: Path) -> int | None:
    length = read_json_object(path).get("max_seq_length") if path.is_file() else None
    return length if isinstance(length, int) else None
