"""Reads the configuration of a checkpoint in the Hugging Face layout. Opens no weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.exporting.files import CheckpointError, read_json_object
from models.exporting.sentence import SentenceSettings, read_sentence_settings

FAMILIES = ("bert", "distilbert", "dpr")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_BERT_KEYS = {"hidden_size", "num_hidden_layers", "num_attention_heads", "type_vocab_size"}
_DEFAULT_ARCHITECTURES = {"bert": "BertModel", "distilbert": "DistilBertModel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Configuration of a checkpoint."""

    directory: Path
    """Directory as the user named it, for messages."""
    config: dict[str, Any]
    """Content of `config.json`."""
    family: str
    """One of `FAMILIES`."""
    architecture: str
    """Class that saved the checkpoint, such as `BertForQuestionAnswering`."""
    settings: SentenceSettings

    @property
    def transformer(self) -> Path:
        """Directory of `config.json` and the weights."""
        return self.settings.transformer

    @property
    def weights(self) -> Path:
        """File of the weights."""
        return next(p for name in _WEIGHTS if (p := self.transformer / name).is_file())

    @property
    def vocabulary_size(self) -> int:
        """Number of rows of the embedding table. All model families have the
        same default.
        """
        return int(self.config.get("vocab_size", 30522))

    @property
    def max_tokens(self) -> int:
        """Longest sequence that the network can run on, in tokens."""
        rows = int(self.config.get("max_position_embeddings", 512))
        return min(rows, self.settings.max_tokens or rows)


def read_checkpoint(directory: Path) -> Checkpoint:
    """Reads the configuration of the checkpoint in `directory`.

    Raises:
        CheckpointError: a file is missing, or the network is not supported.

    """
    if not directory.is_dir():
        raise CheckpointError(
            f"{directory} is not a directory: name a directory in the Hugging Face layout, with "
            "config.json, weights and vocabulary"
        )
    settings = read_sentence_settings(directory)
    path = settings.transformer / "config.json"
    config = read_json_object(path)
    family, architecture = _family_and_architecture(path, config)
    _require_plain_attention(path, config)
    if not any((settings.transformer / name).is_file() for name in _WEIGHTS):
        raise CheckpointError(
            f"{settings.transformer} has no {' and no '.join(_WEIGHTS)}: download its weights as "
            "one file"
        )
    return Checkpoint(
        directory=directory,
        config=config,
        family=family,
        architecture=architecture,
        settings=settings,
    )


def _family_and_architecture(path: Path, config: dict[str, Any]) -> tuple[str, str]:
    architecture = next(iter(config.get("architectures") or []), "")
    family = config.get("model_type", "")
    if not family and set(config) >= _BERT_KEYS:
        family = "bert"  # old conversions name no type; loading the weights refuses a wrong guess
    architecture = architecture or _DEFAULT_ARCHITECTURES.get(family, "")
    if family not in FAMILIES or not architecture:
        raise CheckpointError(
            f"{path} names the architecture {architecture or '(none)'} of type "
            f"{family or '(none)'}: only {', '.join(FAMILIES)} can be turned into a bundle"
        )
    return family, architecture


def _require_plain_attention(path: Path, config: dict[str, Any]) -> None:
    """Refuses networks that transformers would load without an error and compute wrongly."""
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise CheckpointError(
            f"{path}: positions are {positions}, but only absolute positions are supported"
        )
    if config.get("is_decoder"):
        raise CheckpointError(f"{path}: is_decoder is set, but only encoders are supported")
