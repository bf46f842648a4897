"""Stand-ins for the models: exact, instant, and of a few words.

A text has a vector by its words, and a passage is scored by its distance alone. So the answers of a
question are its nearest passages.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import models, pre_tokenizers

from winnow.bundle import Bundle, Manifest
from winnow.content_node.copying.encoding import CopyEncoder
from winnow.domain.write import Put, Write
from winnow.inference.fair_threads import FairThreads
from winnow.inference.stop_signal import StopSignal
from winnow.passages.encoding import SPECIAL, tokenise
from winnow.reading.model import WindowLogits
from winnow.reading.reader import Reader
from winnow.reading.stored_passage import StoredPassage
from winnow.stateless.feed.encoding import FeedEncoder
from winnow.text.encoder import OnEncoded, TextEncoding
from winnow.text.tokenizer import Tokenizer

FIRST_VERSION = "1"
"""Version of the bundle with which every simulation begins."""
WORDS = 40
"""Number of words that have vectors."""
DIMENSION = 8
_MODELS = ("question.onnx", "passage.onnx", "reader.onnx")
_MANIFEST: dict[str, Any] = {
    "format": 1,
    "name": "simulated",
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
}


def make_bundle(directory: Path, version: str) -> Bundle:
    """Writes the bundle of the stand-ins; returns it. Other versions have other vectors."""
    for name in _MODELS:
        (directory / name).write_text(f"{name} of version {version}")
    vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}
    vocabulary |= {f"w{number}": 3 + number for number in range(WORDS)}
    made = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.save(str(directory / "tokenizer.json"))
    contents = {name: (directory / name).read_bytes() for name in (*_MODELS, "tokenizer.json")}
    files = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in contents.items()
    }
    manifest = {**_MANIFEST, "version": version, "files": files}
    (directory / "bundle.json").write_text(json.dumps(manifest))
    return Bundle(directory, Manifest.model_validate(manifest))


@cache
def _word_vector(token: int, version: str) -> NDArray[np.float64]:
    word = f"{token}" if version == FIRST_VERSION else f"{token} of version {version}"
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(DIMENSION)


def vector_of(ids: Sequence[int], version: str) -> NDArray[np.float32]:
    """Returns the vector of a text by a version of the bundle: [dimension], with norm 1."""
    total = sum((_word_vector(int(token), version) for token in ids), np.full(DIMENSION, 1e-3))
    return (total / np.linalg.norm(total)).astype(np.float32)


class SimulatedTextEncoder:
    """A `TextEncoder`."""

    def __init__(self, bundle: Bundle) -> None:
        self._version = bundle.manifest.version

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        loop = asyncio.get_running_loop()
        return TextEncoding(await loop.run_in_executor(None, vector_of, tuple(ids), self._version))

    async def warm_up(self, max_tokens: int) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class _PassageVectors:
    """Takes the place of `PassageEncoder`."""

    def __init__(self, version: str) -> None:
        self._version = version

    def encode(self, title: Sequence[int], text: Sequence[int]) -> NDArray[np.float32]:
        return vector_of(text, self._version)

    def truncates(self, title: Sequence[int], text: Sequence[int]) -> bool:
        return False


class SimulatedFeedEncoder(FeedEncoder):
    """A `FeedEncoder` with vectors by words. It opens no model."""

    def __init__(self, bundle: Bundle, *_: object) -> None:
        self._tokenizer = tokenizer_of(bundle.tokenizer)
        self._encoder = _PassageVectors(bundle.manifest.version)  # type: ignore[assignment]
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


class SimulatedCopyEncoder(CopyEncoder):
    """A `CopyEncoder` with vectors by words. It opens no model and starts no thread."""

    def __init__(self, bundle: Bundle) -> None:
        self.fingerprint = bundle.manifest.encoding_fingerprint
        self._tokenizer, self._version = tokenizer_of(bundle.tokenizer), bundle.manifest.version

    def encode(self, puts: Sequence[Put]) -> list[Write]:
        tokenised = tokenise(self._tokenizer, puts)
        return [each.write(vector_of(each.text.ids, self._version)) for each in tokenised]

    def close(self) -> None:
        """Does nothing."""


class SimulatedReader:
    """Takes the place of `SharedReader` of a content node."""

    def __init__(self, _settings: object, bundle: Bundle, *_: object) -> None:
        self.tokenizer = tokenizer_of(bundle.tokenizer)
        self._reader = Reader(_SpanModel(), bundle.manifest.score)

    def open_warm(self) -> Reader:
        return self._reader
