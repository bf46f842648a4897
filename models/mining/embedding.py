"""Encodes many texts offline on every core, one text per run.

Texts are not batched, because dynamic int8 has one activation scale per batch: a vector would
depend on the other texts of its batch.
"""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from models.data import Passage
from models.progress import track
from winnow.files.opened import sha256
from winnow.settings.common import cores

Vectors = NDArray[np.float32]


class Embedder:
    """Encodes questions and passages as unit vectors."""

    def __init__(self, graph: Path, tokenizer: Path, cache: Path | None = None) -> None:
        """`cache` is a directory for vectors, with a file for each set of passages."""
        self._graph, self._cache = graph, cache
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"]
        )
        self._passage_tokenizer = Tokenizer.from_file(str(tokenizer))
        self._passage_tokenizer.no_padding()
        self._passage_tokenizer.enable_truncation(256, strategy="only_second")
        self._question_tokenizer = Tokenizer.from_file(str(tokenizer))
        self._question_tokenizer.no_padding()
        self._question_tokenizer.enable_truncation(64)

    def questions(self, texts: Sequence[str]) -> Vectors:
        """Encodes questions, float32 [texts, width]."""
        return self._encode_all(
            [self._question_tokenizer.encode(text) for text in texts], "questions"
        )

    def passages(self, passages: Sequence[Passage]) -> Vectors:
        """Encodes passages, float32 [passages, width]. Title and text are a pair of segments."""
        cached = self._cache_file(passages)
        if cached is not None and cached.is_file():
            vectors: Vectors = np.load(cached)
            return vectors
        encodings = self._passage_tokenizer.encode_batch([(p.title, p.text) for p in passages])
        vectors = self._encode_all(encodings, "passages")
        if cached is not None:
            cached.parent.mkdir(parents=True, exist_ok=True)
            partial = cached.with_suffix(".partial")
            with partial.open("wb") as file:
                np.save(file, vectors)
            partial.replace(cached)
        return vectors

    def _cache_file(self, passages: Sequence[Passage]) -> Path | None:
        if self._cache is None:
            return None
        digest = hashlib.sha256(sha256(self._graph).encode())
        for passage in passages:
            digest.update(f"{passage.title}\0{passage.text}\0".encode())
        return self._cache / f"{digest.hexdigest()[:24]}.npy"

    def _encode_all(self, encodings: Sequence[Encoding], label: str) -> Vectors:
        with ThreadPoolExecutor(cores()) as pool:
            run: Callable[[Encoding], Vectors] = self._encode
            rows = track(pool.map(run, encodings), f"encode {label}", len(encodings))
            return np.stack(list(rows))

    def _encode(self, encoding: Encoding) -> Vectors:
        ids = np.array([encoding.ids], dtype=np.int64)
        feed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        vector: Vectors = self._session.run(["embedding"], feed)[0][0]
        return vector
