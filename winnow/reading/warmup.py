"""Runs the reader at typical lengths before the first question.

ONNX Runtime is slow in its first run of a new shape. Later runs measure this machine's speed.
"""

import time

from winnow.deadline import Clock
from winnow.domain.passage import Hit, Passage
from winnow.reading.reader import Reader
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import Tokens

_LENGTHS = (16, 64, 128, 192, 256, 300)
"""Lengths of the passages that are read once, in tokens."""
_TIMED_LENGTHS = (128, 192)
"""Lengths of the timed passages, in tokens.

Their mean is the mean length of passages of 100 words with a title.
"""
_QUESTION_TOKENS = 8
TOKEN = 1000
"""A token id that is in every vocabulary."""


def warm_up(reader: Reader, clock: Clock = time.perf_counter) -> float:
    """Reads synthetic passages; returns the mean seconds per passage of one thread when warm."""
    passages = {length: synthetic_passage(length) for length in _LENGTHS}
    for passage in passages.values():
        read_synthetic(reader, passage, _QUESTION_TOKENS)
    started = clock()
    for length in _TIMED_LENGTHS:
        read_synthetic(reader, passages[length], _QUESTION_TOKENS)
    return (clock() - started) / len(_TIMED_LENGTHS)


def synthetic_passage(length: int) -> StoredPassage:
    """Returns a passage of `length` equal tokens, without a title."""
    tokens = Tokens((TOKEN,) * length, tuple((start, start + 1) for start in range(length)))
    return StoredPassage(Passage("", "", "." * length), (), tokens)


def read_synthetic(reader: Reader, passage: StoredPassage, question_tokens: int) -> None:
    """Reads a passage for a question of `question_tokens` equal tokens."""
    hit = Hit(row=0, passage_id="", distance=0.0, hybrid_distance=0.0)
    reader.read((TOKEN,) * question_tokens, passage, hit, 10)
