"""What it costs to encode questions and passages."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import fmean, median

from winnow.bundle import Bundle
from winnow.inference.encoder import open_passage_encoder, open_question_encoder
from winnow.inference.runtime import InferenceOptions
from winnow.passages.encoding import PassageEncoder
from winnow.sizing.asked import made_up_passages
from winnow.sizing.units import EncodeUnits, LengthCost
from winnow.text.tokenizer import Tokenizer

Pair = tuple[tuple[int, ...], tuple[int, ...]]
"""Tokens of a title and of its text."""
LENGTHS = (4, 8, 16, 32, 62)
"""Tokens of a question, without special ones; 62 is the longest."""
_WORD = 1_000
"""A token that every vocabulary has."""


def measure(bundle: Bundle, threads: int, questions: int = 50, passages: int = 100) -> EncodeUnits:
    """Encodes questions one after the other, then passages in every thread."""
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special)
    by_length = []
    for tokens in LENGTHS:
        spent = _usual(partial(encoder.question, (_WORD,) * tokens), questions)
        by_length.append(LengthCost(tokens=tokens, ms=round(spent, 4)))
    return EncodeUnits(
        question=tuple(by_length), passage=_passages(bundle, tokenizer, threads, passages)
    )


def _passages(bundle: Bundle, tokenizer: Tokenizer, threads: int, number: int) -> LengthCost:
    model = open_passage_encoder(bundle, tokenizer.special, InferenceOptions(runs=threads))
    encoder = PassageEncoder(model, bundle.manifest.encoder)
    rows = made_up_passages()[:number]
    titles = list(tokenizer.tokenise_many([row.passage.title for row in rows]))
    texts = list(tokenizer.tokenise_many([row.passage.text for row in rows]))
    pairs = [(title.ids, text.ids) for title, text in zip(titles, texts, strict=True)]
    spent = _together(lambda pair: encoder.encode(*pair), pairs, threads)
    tokens = fmean(len(title) + len(text) for title, text in pairs)
    return LengthCost(tokens=round(tokens), ms=round(spent, 4))


def _usual(work: Callable[[], object], repetitions: int) -> float:
    """Milliseconds at the median."""
    work()
    found = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        found.append(1e3 * (time.perf_counter() - started))
    return median(found)


def _together(work: Callable[[Pair], object], items: Sequence[Pair], threads: int) -> float:
    """Milliseconds of a core for an item, while all threads work."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, items[: 2 * threads]))
        started = time.perf_counter()
        list(pool.map(work, items))
        return 1e3 * (time.perf_counter() - started) * threads / len(items)
