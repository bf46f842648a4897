"""Scores passages by late interaction offline, with the models and the arithmetic of the server."""

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from models.cached_file import read_cached, write_cached
from models.data import Passage
from models.progress import IntervalTimer, track
from winnow.bundle import Bundle
from winnow.content_node.late_interaction.passage_tokens import open_passage_tokens
from winnow.content_node.late_interaction.similarity import PassageVectors, late_scores
from winnow.domain.passage import Passage as StoredText
from winnow.inference.encoder import open_question_encoder
from winnow.inference.options import InferenceOptions
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.reading.stored_passage import StoredPassage
from winnow.settings.common import cores
from winnow.text.encoder import SPECIAL_TOKENS
from winnow.text.tokenizer import Tokenizer

Levels = NDArray[np.int8]
_SAVE_SECONDS = 300.0
"""Interval at which computed token vectors are saved."""


class TokenScores:
    """Scores passages by late interaction. Keeps their token vectors in memory and in a file."""

    def __init__(self, bundle: Bundle, cache: Path) -> None:
        """`cache` is the directory of the file. The bundle must have late interaction."""
        manifest = bundle.manifest
        self._tokenizer = Tokenizer(bundle.tokenizer)
        options = InferenceOptions(runs=cores())
        special = self._tokenizer.special
        self._questions = open_question_encoder(bundle, special, options, token_vectors=True)
        self._passages = open_passage_tokens(bundle, special, options)
        self._max_question_tokens = manifest.encoder.max_question_tokens - SPECIAL_TOKENS
        self._file = cache / f"token-vectors-{manifest.token_vectors_fingerprint}.npz"
        self._levels = read_cached(self._file, _read_levels) or {}

    def prepare(self, passages: Iterable[Passage]) -> None:
        """Computes the missing token vectors of passages on every core, and saves them.

        After an interruption, the next call resumes.
        """
        missing = {key: each for each in passages if (key := _key(each)) not in self._levels}
        if not missing:
            return
        timer = IntervalTimer(_SAVE_SECONDS)
        with ThreadPoolExecutor(cores()) as pool:
            rows = track(pool.map(self._compute, missing.values()), "token vectors", len(missing))
            try:
                for key, levels in zip(missing, rows, strict=True):
                    self._levels[key] = levels
                    if timer.due():
                        self._save()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                self._save()

    def scores(self, question: str, passages: Sequence[Passage]) -> NDArray[np.float64]:
        """Returns the score of each passage, [passages]. All of them must be prepared."""
        ids = self._tokenizer.tokenise(question).ids[: self._max_question_tokens]
        tokens = self._questions.encode_question(ids).tokens
        assert tokens is not None, "the bundle has late interaction"
        levels = [self._levels[_key(each)] for each in passages]
        lengths = np.array([len(each) for each in levels], np.int64)
        return late_scores(tokens, PassageVectors(np.concatenate(levels), lengths))

    def _compute(self, passage: Passage) -> Levels:
        title = self._tokenizer.tokenise(passage.title).ids[:MAX_TITLE_TOKENS]
        text = StoredText("", passage.title, passage.text)
        stored = StoredPassage(text, title, self._tokenizer.tokenise(passage.text))
        return self._passages.levels(stored)

    def _save(self) -> None:
        if not self._levels:
            return
        parts = list(self._levels.values())
        keys = np.array([np.frombuffer(key, np.uint8) for key in self._levels])
        lengths, levels = np.array([len(each) for each in parts]), np.concatenate(parts)
        write_cached(
            self._file, lambda file: np.savez(file, keys=keys, lengths=lengths, levels=levels)
        )


def _read_levels(file: BinaryIO) -> dict[bytes, Levels]:
    with np.load(file) as saved:
        parts = np.split(saved["levels"], np.cumsum(saved["lengths"])[:-1])
        return dict(zip(map(bytes, saved["keys"]), parts, strict=True))


def _key(passage: Passage) -> bytes:
    return hashlib.sha256(f"{passage.title}\0{passage.text}".encode()).digest()[:16]
