"""Encoding many texts offline, one text a run, with every core.

One text a run because with dynamic int8 a batch shares its activation scale, so that a vector
would depend on its neighbours. Knows ONNX Runtime and the tokenizer's encodings.
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
from models.progress import followed
from winnow.files.opened import sha256
from winnow.settings.common import cores

Vectors = NDArray[np.float32]


class Embedder:
    """Questions and passages to unit vectors."""

    def __init__(
        self, graph: Path, tokenizer: Path, passage_tokens: int = 256, cache: Path | None = None
    ) -> None:
        """`cache` is a directory that keeps the vectors of whole sets of passages."""
        self._graph, self._cache = graph, cache
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(passage_tokens, strategy="only_second")
        self._questions = Tokenizer.from_file(str(tokenizer))
        self._questions.no_padding()
        self._questions.enable_truncation(64)

    def questions(self, texts: Sequence[str]) -> Vectors:
        """float32 [texts, width]."""
        return self._all([self._questions.encode(text) for text in texts], "questions")

    def passages(self, passages: Sequence[Passage]) -> Vectors:
        """float32 [passages, width]; the title and the text are one pair of segments."""
        kept = self._kept(passages)
        if kept is not None and kept.is_file():
            vectors: Vectors = np.load(kept)
            return vectors
        encodings = self._tokenizer.encode_batch([(p.title, p.text) for p in passages])
        vectors = self._all(encodings, "passages")
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            aside = kept.with_suffix(".partial")
            with aside.open("wb") as file:
                np.save(file, vectors)
            aside.replace(kept)
        return vectors

    def _kept(self, passages: Sequence[Passage]) -> Path | None:
        if self._cache is None:
            return None
        digest = hashlib.sha256(sha256(self._graph).encode())
        for passage in passages:
            digest.update(f"{passage.title}\0{passage.text}\0".encode())
        return self._cache / f"{digest.hexdigest()[:24]}.npy"

    def _all(self, encodings: Sequence[Encoding], what: str) -> Vectors:
        with ThreadPoolExecutor(cores()) as pool:
            run: Callable[[Encoding], Vectors] = self._one
            rows = followed(pool.map(run, encodings), f"encode {what}", len(encodings))
            return np.stack(list(rows))

    def _one(self, encoding: Encoding) -> Vectors:
        ids = np.array([encoding.ids], dtype=np.int64)
        feed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        vector: Vectors = self._session.run(["embedding"], feed)[0][0]
        return vector
