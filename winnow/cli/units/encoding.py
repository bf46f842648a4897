"""Measures what it costs to encode questions and passages."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import fmean, median

from winnow.bundle import Bundle
from winnow.inference.encoder import open_passage_encoder, open_question_encoder
from winnow.inference.runtime import InferenceOptions
from winnow.passages.encoding import PassageEncoder
from winnow.sizing.asked import made_up_passages
from winnow.sizing.timing import milliseconds
from winnow.sizing.units import EncodeUnits, LengthCost
from winnow.text.tokenizer import Tokenizer

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
        times = milliseconds(partial(encoder.question, (_WORD,) * tokens), questions)
        by_length.append(LengthCost(tokens=tokens, ms=round(median(times), 4)))
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
    spent = _core_milliseconds(encoder, pairs, threads)
    tokens = fmean(len(title) + len(text) for title, text in pairs)
    return LengthCost(tokens=round(tokens), ms=round(spent, 4))


def _core_milliseconds(
    encoder: PassageEncoder,
    pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    threads: int,
) -> float:
    """Milliseconds of a core for a pair of title and text, while all threads encode."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda pair: encoder.encode(*pair), pairs[: 2 * threads]))
        started = time.perf_counter()
        list(pool.map(lambda pair: encoder.encode(*pair), pairs))
        return 1e3 * (time.perf_counter() - started) * threads / len(pairs)
