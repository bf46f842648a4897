"""Running the reader once at every kind of length before the first question pays for it.

First runs at a new shape are slow in ONNX Runtime.
"""

from content_node.reader.reader import Reader
from content_node.shard.store import StoredPassage
from winnow.domain.passage import Hit, Passage
from winnow.text.tokenizer import Tokens

_LENGTHS = (16, 64, 128, 192, 256, 300)
_WORD = 1000
"""A token id that every vocabulary has."""


def warm_up(reader: Reader) -> None:
    """Reads made-up passages of several lengths."""
    for length in _LENGTHS:
        tokens = Tokens((_WORD,) * length, tuple((i, i + 1) for i in range(length)))
        passage = Passage("", "", "." * length)
        reader.read((_WORD,) * 8, StoredPassage(passage, (), tokens), Hit(0, "", 0.0, 0.0), 10)
