"""Computes the token states of texts with the served encoder, caches them on disk, batches them.

The name of a cache entry depends on its texts and its encoder.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.data import DataError
from models.heads.entities import Spans
from models.progress import track
from winnow.bundle import Bundle
from winnow.errors import ArtefactError
from winnow.inference.encoder import States, open_question_encoder
from winnow.inference.options import InferenceOptions
from winnow.settings.common import cores
from winnow.text.encoder import SPECIAL_TOKENS
from winnow.text.tokenizer import Tokenizer

_STATES, _LENGTHS, _OFFSETS = "states.npy", "lengths.npy", "offsets.npy"


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Concatenated token states of many texts. Each text includes [CLS] and [SEP]."""

    states: States
    """States, [rows, width], memory-mapped from a file."""
    ends: NDArray[np.int64]
    """One past the last row of each text, in `states` and `offsets`."""
    offsets: NDArray[np.int32]
    """Characters of each token, [rows, 2]; (0, 0) for [CLS] and [SEP]."""

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of rows of each text."""
        return np.diff(self.ends, prepend=0)

    @property
    def width(self) -> int:
        """Number of values of a state."""
        return int(self.states.shape[1])

    def states_of(self, text: int) -> States:
        """Returns the states of the text with this index, [tokens + 2, width]."""
        return self.states[self._slice_of(text)]

    def pieces(self, text: int) -> Spans:
        """Returns the characters of each token of a text, without [CLS] and [SEP]."""
        return [(int(start), int(end)) for start, end in self.offsets[self._slice_of(text)][1:-1]]

    def _slice_of(self, text: int) -> slice:
        return slice(int(self.ends[text - 1]) if text else 0, int(self.ends[text]))


def encode_texts(texts: Sequence[str], bundle: Bundle, cache: Path, label: str) -> EncodedTexts:
    """Returns the states of `texts` from the directory `cache`, after computing them if missing.

    An interruption leaves no partial entry. Long texts are truncated as by the server. `label` is
    shown with the progress.

    Raises:
        DataError: the cache cannot be written to.
        ArtefactError: a file of the cache is damaged.

    """
    entry = cache / _cache_key(texts, bundle)
    if not (entry / _STATES).is_file():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            temporary = TemporaryDirectory(dir=cache, prefix=".")
        except OSError as error:
            raise DataError(
                f"cannot write to {cache}: {error.strerror}; set another --work"
            ) from error
        with temporary as directory:
            computed = Path(directory) / "states"
            computed.mkdir()
            _compute_states(texts, bundle, computed, label)
            if not entry.is_dir():  # another process may have stored it first
                computed.rename(entry)
    try:
        states = np.load(entry / _STATES, mmap_mode="r")
        return EncodedTexts(states, np.cumsum(np.load(entry / _LENGTHS)), np.load(entry / _OFFSETS))
    except (OSError, ValueError) as error:
        raise ArtefactError(f"{entry} is damaged ({error}): remove it") from error


def _cache_key(texts: Sequence[str], bundle: Bundle) -> str:
    digest = hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()
    max_tokens = bundle.manifest.encoder.max_question_tokens
    return f"{bundle.manifest.states_fingerprint}-{max_tokens}-{digest[:24]}"


def _compute_states(texts: Sequence[str], bundle: Bundle, target: Path, label: str) -> None:
    tokenizer = Tokenizer(bundle.tokenizer)
    threads = cores()
    encoder = open_question_encoder(
        bundle, tokenizer.special, InferenceOptions(runs=threads), states=True
    )
    max_tokens = bundle.manifest.encoder.max_question_tokens - SPECIAL_TOKENS
    tokens = list(tokenizer.tokenise_many(texts))
    lengths = np.array(
        [min(len(each), max_tokens) + SPECIAL_TOKENS for each in tokens], dtype=np.int64
    )
    offsets = [
        np.array([(0, 0), *each.offsets[:max_tokens], (0, 0)], dtype=np.int32) for each in tokens
    ]

    def encode(ids: Sequence[int]) -> States:
        states = encoder.with_states(ids[:max_tokens])[1]
        assert states is not None, "the encoder was opened with states"
        return states

    width = encode([]).shape[1]
    shape = (int(lengths.sum()), width)
    rows = np.lib.format.open_memmap(target / _STATES, "w+", np.float16, shape)
    with ThreadPoolExecutor(threads) as pool:
        try:
            encoded = pool.map(encode, [each.ids for each in tokens])
            start = 0
            for states in track(encoded, label, len(tokens)):
                rows[start : start + len(states)] = states
                start += len(states)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    rows.flush()
    np.save(target / _LENGTHS, lengths)
    np.save(target / _OFFSETS, np.concatenate(offsets))


_SORTED_BATCHES = 32
"""Number of batches whose texts are sorted by length together, to reduce padding."""

Indices = NDArray[np.int64]


def draw_batches(
    indices: Indices, lengths: NDArray[np.int64], size: int, generator: np.random.Generator
) -> Iterator[Indices]:
    """Yields every index once, in random batches of texts of similar length."""
    order = generator.permutation(indices)
    batches = []
    for begin in range(0, len(order), size * _SORTED_BATCHES):
        window = order[begin : begin + size * _SORTED_BATCHES]
        window = window[np.argsort(lengths[window], kind="stable")]
        batches += [window[start : start + size] for start in range(0, len(window), size)]
    generator.shuffle(batches)
    yield from batches


def pad_states(encoded: EncodedTexts, indices: Sequence[int] | Indices) -> tuple[Tensor, Tensor]:
    """Returns float32 states [texts, tokens, width] and the bool mask of tokens [texts, tokens]."""
    by_text = [encoded.states_of(int(index)) for index in indices]
    max_length = max(map(len, by_text))
    padded = np.zeros((len(by_text), max_length, encoded.width), dtype=np.float32)
    mask = np.zeros((len(by_text), max_length), dtype=np.bool_)
    for row, states in enumerate(by_text):
        padded[row, : len(states)] = states
        mask[row, : len(states)] = True
    return torch.from_numpy(padded), torch.from_numpy(mask)
