"""Settings of a sentence-transformers directory beside its network.

Knows `modules.json` and the files it names: where the transformer lies, how its states are pooled
and how the vectors are compared. Knows nothing of weights.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from models.exporting.files import CheckpointError, read_json, read_json_object

MODULES = "modules.json"
_KNOWN = {"Transformer", "Pooling", "Normalize"}
_SETTINGS = "config_sentence_transformers.json"
_LENGTHS = "sentence_bert_config.json"
_FLAG = "pooling_mode_"
_FLAGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


class Pooling(StrEnum):
    """Pooling of the states of a sequence into one vector."""

    MEAN = "mean"
    """The mean over the attended tokens."""
    CLS = "cls"
    """The first token's."""


class Similarity(StrEnum):
    """Comparison of a question's vector with a passage's."""

    COSINE = "cosine"
    DOT = "dot"
    """The inner product, as DPR's."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Settings of a directory; None where it has none."""

    transformer: Path
    """The directory of `config.json` and the weights."""
    pooling: Pooling | None = None
    similarity: Similarity | None = None
    most_tokens: int | None = None
    """The longest sequence it was made for, special tokens included."""


def read_sentence(directory: Path) -> Sentence:
    """Reads the settings of `directory`; a plain one is its own transformer.

    Raises:
        CheckpointError: it has a module, or a pooling, that Winnow does not have.

    """
    if not (directory / MODULES).is_file():
        return Sentence(directory)
    parts = {_kind(module): directory / module.get("path", "") for module in _modules(directory)}
    if unknown := set(parts) - _KNOWN:
        raise CheckpointError(
            f"{directory / MODULES} has a module {', '.join(sorted(unknown))}: only "
            f"{', '.join(sorted(_KNOWN))} can be turned into a bundle"
        )
    if "Transformer" not in parts or "Pooling" not in parts:
        raise CheckpointError(f"{directory / MODULES} lacks a Transformer or a Pooling module")
    transformer = parts["Transformer"]
    return Sentence(
        transformer,
        _pooling(parts["Pooling"] / "config.json"),
        _similarity(directory / _SETTINGS),
        _most_tokens(transformer / _LENGTHS),
    )


def _modules(directory: Path) -> list[dict[str, Any]]:
    modules = read_json(directory / MODULES)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise CheckpointError(f"{directory / MODULES} is not a list of modules")
    return modules


def _kind(module: dict[str, Any]) -> str:
    """`sentence_transformers.models.Pooling` is a Pooling."""
    return str(module.get("type", "")).rpartition(".")[2]


def _pooling(path: Path) -> Pooling:
    config = read_json_object(path)
    # one word in newer files, one flag for each way of pooling in older ones
    flags = [name for key, name in _FLAGS.items() if config.get(key)]
    flags += [
        key for key, on in config.items() if key.startswith(_FLAG) and on and key not in _FLAGS
    ]
    chosen = [config["pooling_mode"]] if "pooling_mode" in config else flags
    if len(chosen) != 1 or chosen[0] not in set(Pooling):
        raise CheckpointError(
            f"{path} pools by {', '.join(map(str, chosen)) or 'nothing'}: only "
            f"{' or '.join(Pooling)} alone can be turned into a bundle"
        )
    return Pooling(chosen[0])


def _similarity(path: Path) -> Similarity | None:
    named = read_json_object(path).get("similarity_fn_name") if path.is_file() else None
    if named is not None and named not in set(Similarity):
        raise CheckpointError(
            f"{path} compares vectors by {named}: only {' or '.join(Similarity)} is known"
        )
    return None if named is None else Similarity(named)


def _most_tokens(path: Path) -> int | None:
    most = read_json_object(path).get("max_seq_length") if path.is_file() else None
    return most if isinstance(most, int) else None
