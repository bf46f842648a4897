"""What it costs to read a passage, by its length."""

from dataclasses import dataclass
from functools import partial
from statistics import median

from content_node.measuring.timing import milliseconds, spread, together
from content_node.reader import open_reader
from content_node.reader.reader import Reader
from content_node.shard.store import StoredPassage
from winnow.bundle import Bundle
from winnow.domain.passage import Hit, Passage
from winnow.inference.runtime import InferenceOptions
from winnow.sizing.units import LengthCost
from winnow.text.tokenizer import Tokenizer, Tokens

LENGTHS = (32, 64, 96, 128, 160, 192, 256, 320)
"""Tokens of question, title and text together."""
QUESTION = 10
"""Of which are the question's."""
USUAL = 128
_REPETITIONS = 60
_WORD = 1_000
"""A token that every vocabulary has."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What reading costs."""

    by_length: tuple[LengthCost, ...]
    spread: tuple[float, ...]
    together: float


def measure(bundle: Bundle, threads: int, repetitions: int = _REPETITIONS) -> Reads:
    """Reads made-up passages: first alone, round after round, then in every thread."""
    special = Tokenizer(bundle.tokenizer).special
    reader = open_reader(bundle, special, InferenceOptions(runs=threads))
    times = [milliseconds(partial(_read, reader, length), repetitions) for length in LENGTHS]
    alone = median(times[LENGTHS.index(USUAL)])
    crowded = together(lambda: _read(reader, USUAL), threads, repetitions)
    by_length = tuple(
        LengthCost(tokens=tokens, ms=round(median(own), 4))
        for tokens, own in zip(LENGTHS, times, strict=True)
    )
    return Reads(by_length, spread(times), round(alone / crowded, 4))


def _read(reader: Reader, tokens: int) -> None:
    length = tokens - QUESTION
    text = Tokens((_WORD,) * length, tuple((place, place + 1) for place in range(length)))
    stored = StoredPassage(Passage("", "", "." * length), (), text)
    reader.read((_WORD,) * QUESTION, stored, Hit(0, "", 0.0, 0.0), 10)
