"""Encodes many texts offline on every core, one text per run.

Texts are not batched, because dynamic int8 has one activation scale per batch: a vector would
depend on the other texts of its batch.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from models.cached_file import read_cached, write_cached
from models.data import Passage
from models.progress import track
from winnow.bundle import Bundle
from winnow.files.opened import sha256
from winnow.inference.session import model_inputs
from winnow.passages.encoding import MAX_TITLE_TOKENS, SPECIAL
from winnow.settings.common import cores
from winnow.text.encoder import SPECIAL_TOKENS
from winnow.text.tokenizer import Tokenizer

Vectors = NDArray[np.float32]
TypedTokens = tuple[list[int], list[int]]
"""Token ids and token type ids of a text, with special tokens."""


@dataclass(frozen=True, slots=True)
class EncoderInputs:
    """The inputs that encoders expect. The default values are those of an assembled bundle."""

    max_question_tokens: int = 64
    """Maximum number of tokens, with special tokens."""
    max_passage_tokens: int = 256
    """Maximum number of tokens, with special tokens."""
    passage_token_types: tuple[int, int] = (0, 0)
    """Token type ids of title and text."""


ASSEMBLED = EncoderInputs()


class Embedder:
    """Encodes questions and passages as unit vectors. Truncates them as the server does."""

    def __init__(
        self,
        graph: Path,
        tokenizer: Path,
        cache: Path | None = None,
        *,
        question_graph: Path | None = None,
        inputs: EncoderInputs = ASSEMBLED,
    ) -> None:
        """`cache` is a directory for vectors, with a file for each set of passages.

        `question_graph` encodes questions, if another graph than that of passages does.
        """
        self._graph, self._cache, self._inputs = graph, cache, inputs
        self._session = self._question_session = _open(graph)
        if question_graph not in {None, graph}:
            self._question_session = _open(question_graph)
        self._tokenizer_file, self._tokenizer = tokenizer, Tokenizer(tokenizer)

    @classmethod
    def of(cls, bundle: Bundle, cache: Path | None = None) -> "Embedder":
        """Encodes with the encoders of a bundle."""
        entry = bundle.manifest.encoder
        return cls(
            bundle.passage_encoder,
            bundle.tokenizer,
            cache,
            question_graph=bundle.question_encoder,
            inputs=EncoderInputs(
                entry.max_question_tokens, entry.max_passage_tokens, entry.passage_token_types
            ),
        )

    def questions(self, texts: Sequence[str]) -> Vectors:
        """Encodes questions, float32 [texts, width]. There must be at least one."""
        special, limit = self._tokenizer.special, self._inputs.max_question_tokens - SPECIAL_TOKENS
        sequences = [
            [special.cls, *tokens.ids[:limit], special.sep]
            for tokens in self._tokenizer.tokenise_many(texts)
        ]
        typed = [(ids, [0] * len(ids)) for ids in sequences]
        return _encode_all(self._question_session, typed, "questions")

    def passages(self, passages: Sequence[Passage]) -> Vectors:
        """Encodes passages, float32 [passages, width]. Title and text are a pair of segments."""
        cached = self._cache_file(passages)
        if cached is not None and (vectors := read_cached(cached, _read_vectors)) is not None:
            return vectors
        titles = self._tokenizer.tokenise_many([each.title for each in passages])
        texts = self._tokenizer.tokenise_many([each.text for each in passages])
        typed = [
            self._typed_passage(title.ids, text.ids)
            for title, text in zip(titles, texts, strict=True)
        ]
        encoded = _encode_all(self._session, typed, "passages")
        if cached is not None:
            write_cached(cached, lambda file: np.save(file, encoded))
        return encoded

    def _typed_passage(self, title: Sequence[int], text: Sequence[int]) -> TypedTokens:
        special, title = self._tokenizer.special, title[:MAX_TITLE_TOKENS]
        limit = max(self._inputs.max_passage_tokens - SPECIAL - len(title), 0)
        head = [special.cls, *title, special.sep]
        tail = [*text[:limit], special.sep]
        of_title, of_text = self._inputs.passage_token_types
        return head + tail, [of_title] * len(head) + [of_text] * len(tail)

    def _cache_file(self, passages: Sequence[Passage]) -> Path | None:
        if self._cache is None:
            return None
        limit, types = self._inputs.max_passage_tokens, self._inputs.passage_token_types
        encoder = sha256(self._graph), sha256(self._tokenizer_file), limit, *types
        digest = hashlib.sha256(repr(encoder).encode())
        for passage in passages:
            digest.update(f"{passage.title}\0{passage.text}\0".encode())
        return self._cache / f"{digest.hexdigest()[:24]}.npy"


def _open(graph: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def _read_vectors(file: BinaryIO) -> Vectors:
    vectors: Vectors = np.load(file)
    return vectors


def _encode_all(
    session: onnxruntime.InferenceSession, texts: Sequence[TypedTokens], label: str
) -> Vectors:
    def encode(typed: TypedTokens) -> Vectors:
        vector: Vectors = session.run(["embedding"], model_inputs(*typed))[0][0]
        return vector

    with ThreadPoolExecutor(cores()) as pool:
        rows = track(pool.map(encode, texts), f"encode {label}", len(texts))
        return np.stack(list(rows))
