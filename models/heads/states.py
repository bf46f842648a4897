"""States of texts, computed once by the encoder that serves, and kept; batches of them.

Files of states are named after the texts and the encoder.
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
from models.progress import followed
from winnow.bundle import Bundle
from winnow.errors import ArtefactError
from winnow.inference.encoder import States, open_question_encoder
from winnow.inference.runtime import InferenceOptions
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer

_SPECIAL = 2
_STATES, _LENGTHS, _OFFSETS = "states.npy", "lengths.npy", "offsets.npy"


@dataclass(frozen=True, slots=True)
class Encoded:
    """The states of many texts, one after the other, each with [CLS] and [SEP]."""

    states: States
    """[rows, width], mapped from a file."""
    ends: NDArray[np.int64]
    """One past the last row of each text."""
    offsets: NDArray[np.int32]
    """[rows, 2]: the characters of each token; of [CLS] and [SEP] none."""

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Rows of each text."""
        return np.diff(self.ends, prepend=0)

    @property
    def width(self) -> int:
        """Values of a state."""
        return int(self.states.shape[1])

    def of(self, text: int) -> States:
        """Returns the states of one text, [tokens + 2, width]."""
        return self.states[self._rows(text)]

    def pieces(self, text: int) -> Spans:
        """Returns the characters of its tokens, without [CLS] and [SEP]."""
        return [(int(start), int(end)) for start, end in self.offsets[self._rows(text)][1:-1]]

    def _rows(self, text: int) -> slice:
        return slice(int(self.ends[text - 1]) if text else 0, int(self.ends[text]))


def encode(texts: Sequence[str], bundle: Bundle, kept: Path, what: str) -> Encoded:
    """Returns the states of `texts`, from the directory `kept` if it has them, else computed and
    put there.

    An interruption leaves nothing behind. Texts longer than the encoder reads are cut, as they are
    where heads are served.
    """
    place = kept / _key(texts, bundle)
    if not (place / _STATES).is_file():
        try:
            kept.mkdir(parents=True, exist_ok=True)
            aside = TemporaryDirectory(dir=kept, prefix=".")
        except OSError as error:
            raise DataError(f"cannot write to {kept}: {error.strerror}") from error
        with aside as directory:
            made = Path(directory) / "states"
            made.mkdir()
            _compute(texts, bundle, made, what)
            if not place.is_dir():  # another run may have been quicker
                made.rename(place)
    try:
        return _open(place)
    except (OSError, ValueError) as error:
        raise ArtefactError(f"{place} is damaged: remove it: {error}") from error


def _open(place: Path) -> Encoded:
    states = np.load(place / _STATES, mmap_mode="r")
    return Encoded(states, np.cumsum(np.load(place / _LENGTHS)), np.load(place / _OFFSETS))


def _key(texts: Sequence[str], bundle: Bundle) -> str:
    digest = hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()
    most = bundle.manifest.encoder.max_question_tokens
    return f"{bundle.manifest.states_fingerprint}-{most}-{digest[:24]}"


def _compute(texts: Sequence[str], bundle: Bundle, target: Path, what: str) -> None:
    tokenizer = Tokenizer(bundle.tokenizer)
    threads = cores()
    encoder = open_question_encoder(
        bundle, tokenizer.special, InferenceOptions(runs=threads), states=True
    )
    most = bundle.manifest.encoder.max_question_tokens - _SPECIAL
    tokens = list(tokenizer.tokenise_many(texts))
    lengths = np.array([min(len(each), most) + _SPECIAL for each in tokens], dtype=np.int64)
    offsets = [np.array([(0, 0), *each.offsets[:most], (0, 0)], dtype=np.int32) for each in tokens]

    def states(ids: Sequence[int]) -> States:
        found = encoder.with_states(ids[:most])[1]
        assert found is not None, "the encoder was opened with states"
        return found

    width = states([]).shape[1]
    shape = (int(lengths.sum()), width)
    rows = np.lib.format.open_memmap(target / _STATES, "w+", np.float16, shape)
    with ThreadPoolExecutor(threads) as pool:
        try:
            found = pool.map(states, [each.ids for each in tokens])
            at = 0
            for one in followed(found, what, len(tokens)):
                rows[at : at + len(one)] = one
                at += len(one)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    rows.flush()
    np.save(target / _LENGTHS, lengths)
    np.save(target / _OFFSETS, np.concatenate(offsets))


_TOGETHER = 32
"""Batches whose texts are sorted by length, so that little is padding."""

Places = NDArray[np.int64]


def batches(
    places: Places, lengths: NDArray[np.int64], size: int, chance: np.random.Generator
) -> Iterator[Places]:
    """Yields every place once, in batches of texts of about one length, in an order of chance."""
    order = chance.permutation(places)
    found = []
    for begin in range(0, len(order), size * _TOGETHER):
        part = order[begin : begin + size * _TOGETHER]
        part = part[np.argsort(lengths[part], kind="stable")]
        found += [part[at : at + size] for at in range(0, len(part), size)]
    chance.shuffle(found)
    yield from found


def padded(encoded: Encoded, places: Sequence[int] | Places) -> tuple[Tensor, Tensor]:
    """States float32 [batch, tokens, width], and which of them are tokens, bool."""
    each = [encoded.of(int(place)) for place in places]
    longest = max(map(len, each))
    states = np.zeros((len(each), longest, encoded.width), dtype=np.float32)
    mask = np.zeros((len(each), longest), dtype=np.bool_)
    for row, found in enumerate(each):
        states[row, : len(found)] = found
        mask[row, : len(found)] = True
    return torch.from_numpy(states), torch.from_numpy(mask)
