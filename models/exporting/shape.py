"""Named sizes of BERT with random weights, where only the time matters.

The sizes are those of Turc et al. 2019, "Well-read students learn better", with heads of 64 values
and an inner layer four times as wide, as in all of BERT.
"""

from enum import StrEnum
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertForQuestionAnswering

from models.network.quiet import quiet

_HEAD = 64


class Shape(StrEnum):
    """A size of BERT."""

    BASE = "base"
    MEDIUM = "medium"
    SMALL = "small"
    MINI = "mini"
    TINY = "tiny"

    @property
    def layers(self) -> int:
        return _SIZES[self][0]

    @property
    def width(self) -> int:
        """Values of a token's state."""
        return _SIZES[self][1]


_SIZES = {
    Shape.BASE: (12, 768),
    Shape.MEDIUM: (8, 512),
    Shape.SMALL: (4, 512),
    Shape.MINI: (4, 256),
    Shape.TINY: (2, 128),
}


def save_random_reader(shape: Shape, tokenizer: Path, directory: Path, seed: int) -> None:
    """Saves a reader of `shape` for the words of `tokenizer`, in the Hugging Face layout."""
    words = Tokenizer.from_file(str(tokenizer))
    config = BertConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.width // _HEAD,
        intermediate_size=4 * shape.width,
    )
    torch.manual_seed(seed)
    with quiet():
        BertForQuestionAnswering(config).save_pretrained(directory)
    words.save(str(directory / "tokenizer.json"))
