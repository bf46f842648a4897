"""Runs the reader at typical lengths before the first question.

ONNX Runtime is slow in its first run of a new shape. Later runs measure this machine's speed.
"""

import time

from winnow.content_node.reader.reader import Reader
from winnow.content_node.shard.store import StoredPassage
from winnow.deadline import Clock
from winnow.domain.passage import Hit, Passage
from winnow.text.tokenizer import Tokens

_LENGTHS = (16, 64, 128, 192, 256, 300)
"""Lengths in tokens; their mean is that of passages of 100 words with a title."""
_WORD = 1000
"""A token id that every vocabulary has."""


def warm_up(reader: Reader, clock: Clock = time.perf_counter) -> float:
    """Reads synthetic passages; returns the mean seconds per passage of one thread when warm."""
    for length in _LENGTHS:
        _read(reader, length)
    started = clock()
    for length in _LENGTHS:
        _read(reader, length)
    return (clock() - started) / len(_LENGTHS)


def _read(reader: Reader, length: int) -> None:
    tokens = Tokens((_WORD,) * length, tuple((i, i + 1) for i in range(length)))
    passage = Passage("", "", "." * length)
    reader.read(
        (_WORD,) * 8,
        StoredPassage(passage, (), tokens),
        Hit(row=0, passage_id="", distance=0.0, hybrid_distance=0.0),
        10,
    )
