"""A checkpoint on disk, in the Hugging Face layout.

Knows which files it is made of and what kind of network its configuration names; opens no weights.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.exporting.files import CheckpointError, read_json_object
from models.exporting.sentence import Sentence, read_sentence

FAMILIES = ("bert", "distilbert", "dpr")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_BERT_KEYS = {"hidden_size", "num_hidden_layers", "num_attention_heads", "type_vocab_size"}
_PLAIN = {"bert": "BertModel", "distilbert": "DistilBertModel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A directory whose configuration was read."""

    directory: Path
    """The directory as the user named it, for messages."""
    config: dict[str, Any]
    family: str
    """One of `FAMILIES`."""
    architecture: str
    """The class that saved it, such as `BertForQuestionAnswering`."""
    sentence: Sentence

    @property
    def transformer(self) -> Path:
        """Directory of `config.json` and the weights."""
        return self.sentence.transformer

    @property
    def weights(self) -> Path:
        """The file of weights."""
        return next(p for name in _WEIGHTS if (p := self.transformer / name).is_file())

    @property
    def tokens(self) -> int:
        """Rows of the embedding table; the default is that of every such configuration class."""
        return int(self.config.get("vocab_size", 30522))

    @property
    def positions(self) -> int:
        """The longest sequence the network can run on."""
        most = int(self.config.get("max_position_embeddings", 512))
        return min(most, self.sentence.most_tokens or most)


def read_checkpoint(directory: Path) -> Checkpoint:
    """Reads what `directory` holds.

    Raises:
        CheckpointError: a file is missing, or its network is of an unknown kind.

    """
    if not directory.is_dir():
        raise CheckpointError(
            f"{directory} is not a directory: name one in the Hugging Face layout, with "
            "config.json, weights and vocabulary"
        )
    sentence = read_sentence(directory)
    path = sentence.transformer / "config.json"
    config = read_json_object(path)
    family, architecture = _kind(path, config)
    _refuse_other_attention(path, config)
    if not any((sentence.transformer / name).is_file() for name in _WEIGHTS):
        raise CheckpointError(
            f"{sentence.transformer} has no {' and no '.join(_WEIGHTS)}: download its weights, in "
            "one file"
        )
    return Checkpoint(
        directory=directory,
        config=config,
        family=family,
        architecture=architecture,
        sentence=sentence,
    )


def _kind(path: Path, config: dict[str, Any]) -> tuple[str, str]:
    architecture = next(iter(config.get("architectures") or []), "")
    family = config.get("model_type", "")
    if not family and set(config) >= _BERT_KEYS:
        family = "bert"  # old conversions name no type; a wrong guess lacks weights, and is refused
    architecture = architecture or _PLAIN.get(family, "")
    if family not in FAMILIES or not architecture:
        raise CheckpointError(
            f"{path} names the architecture {architecture or '(none)'} of type "
            f"{family or '(none)'}: only {', '.join(FAMILIES)} can be turned into a bundle"
        )
    return family, architecture


def _refuse_other_attention(path: Path, config: dict[str, Any]) -> None:
    """Refuses networks that these classes would load silently and compute wrongly."""
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise CheckpointError(f"{path}: positions are {positions}, only absolute ones are known")
    if config.get("is_decoder"):
        raise CheckpointError(f"{path}: is_decoder is set, but every token must see every other")
