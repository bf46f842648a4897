"""Stand-ins for the models: exact, instant, and of a few words.

A text has a vector by its words, and a passage is scored by its distance alone. So the answers of a
question are its nearest passages.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import models, pre_tokenizers

from winnow.bundle import Bundle, Manifest
from winnow.inference.fair_threads import FairThreads
from winnow.inference.stop_signal import StopSignal
from winnow.passages.encoding import SPECIAL
from winnow.reading.model import WindowLogits
from winnow.reading.reader import Reader
from winnow.reading.stored_passage import StoredPassage
from winnow.stateless.feed.encoding import FeedEncoder
from winnow.text.encoder import OnEncoded, TextEncoding
from winnow.text.tokenizer import Tokenizer

WORDS = 40
"""Number of words that have vectors."""
DIMENSION = 8
_FILES = ("question.onnx", "passage.onnx", "reader.onnx", "tokenizer.json")
_MANIFEST: dict[str, Any] = {
    "format": 1,
    "name": "simulated",
    "version": "1",
    "encoder": {
        "question": "question.onnx",
        "passage": "passage.onnx",
        "dimension": DIMENSION,
        "max_question_tokens": 34,
        "max_passage_tokens": 128,
        "passage_token_types": [0, 0],
        "precision": "fp32",
    },
    "reader": {
        "file": "reader.onnx",
        "max_tokens": 128,
        "window_overlap": 16,
        "token_types": [0, 1],
        "max_answer_tokens": 10,
        "precision": "fp32",
    },
    "score": {"relevance": 0, "span": 0, "distance": -1, "no_answer_below": -100},
    "tokenizer": "tokenizer.json",
    "files": {name: {"sha256": name, "bytes": 0} for name in _FILES},
}


def make_bundle(directory: Path) -> Bundle:
    """Writes the tokenizer of the stand-ins; returns their bundle."""
    vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}
    vocabulary |= {f"w{number}": 3 + number for number in range(WORDS)}
    made = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.save(str(directory / "tokenizer.json"))
    return Bundle(directory, Manifest.model_validate(_MANIFEST))


@cache
def _word_vector(token: int) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(str(token).encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(DIMENSION)


def vector_of(ids: Sequence[int]) -> NDArray[np.float32]:
    """Returns the vector of a text: [dimension], with norm 1."""
    total = sum((_word_vector(int(token)) for token in ids), np.full(DIMENSION, 1e-3))
    return (total / np.linalg.norm(total)).astype(np.float32)


class SimulatedTextEncoder:
    """A `TextEncoder`."""

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        loop = asyncio.get_running_loop()
        return TextEncoding(await loop.run_in_executor(None, vector_of, tuple(ids)))

    async def warm_up(self, max_tokens: int) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class _PassageVectors:
    """Takes the place of `PassageEncoder`."""

    def encode(self, title: Sequence[int], text: Sequence[int]) -> NDArray[np.float32]:
        return vector_of(text)

    def truncates(self, title: Sequence[int], text: Sequence[int]) -> bool:
        return False


class SimulatedFeedEncoder(FeedEncoder):
    """A `FeedEncoder` with vectors by words. It opens no model."""

    def __init__(self, bundle: Bundle, *_: object) -> None:
        self._tokenizer = tokenizer_of(bundle.tokenizer)
        self._encoder = _PassageVectors()  # type: ignore[assignment]
        self._max_tokens = bundle.manifest.encoder.max_passage_tokens - SPECIAL
        self._pool = FairThreads(2, "feed")


class _SpanModel:
    """A `ReadingModel` that finds the first token of each passage."""

    def window_ranges(
        self, question: Sequence[int], title: Sequence[int], tokens: int
    ) -> list[tuple[int, int]]:
        return [(0, tokens)]

    def run_windows(
        self, question: Sequence[int], stored: StoredPassage, stop: StopSignal | None = None
    ) -> Iterator[WindowLogits]:
        logits = -np.arange(len(stored.tokens), dtype=np.float32)
        yield WindowLogits(0, logits, logits, 0.0)


@cache
def tokenizer_of(path: Path) -> Tokenizer:
    """Opens a tokenizer once."""
    return Tokenizer(path)


class SimulatedReader:
    """Takes the place of `SharedReader` of a content node."""

    def __init__(self, bundle: Bundle) -> None:
        self.tokenizer = tokenizer_of(bundle.tokenizer)
        self._reader = Reader(_SpanModel(), bundle.manifest.score)

    def open_warm(self) -> Reader:
        return self._reader
