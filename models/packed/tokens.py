"""Builds token sequences of packed passages and questions, on a GPU or CPU."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.packed.arrays import PackedPassages, PackedQuestions

_MULTIPLE = 16
"""Sequences are padded to a multiple of this length, because fused attention needs it."""
READER_TITLE_TOKENS = 16
ENCODER_TOKENS, _ENCODER_TITLE_TOKENS = 256, 32


@dataclass(frozen=True, slots=True)
class Sequences:
    """Padded token sequences."""

    ids: Tensor
    """int64 [sequences, tokens]."""
    mask: Tensor
    """True for tokens and false for padding, [sequences, tokens]."""
    text: Tensor
    """Position of the first token of the text, [sequences]."""
    text_lengths: Tensor
    """Number of tokens of the text, [sequences]."""

    @property
    def text_mask(self) -> Tensor:
        """True for tokens of the text and false for all others, [sequences, tokens]."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        first = self.text[:, None]
        return (positions >= first) & (positions < first + self.text_lengths[:, None])


class PassageTokens:
    """Token ids of a pack's passages on a device."""

    def __init__(self, passages: PackedPassages, device: torch.device) -> None:
        self.tokens = _to_tensor(passages.tokens, device, torch.int32)
        self.starts = _to_tensor(passages.starts, device, torch.int64)
        self.titles = _to_tensor(passages.title_lengths, device, torch.int64)
        self.continues = _to_tensor(passages.continues, device, torch.bool)
        self._cls, self._sep = (int(token) for token in passages.special)
        self.lengths = self.starts[1:] - self.starts[:-1]
        """Number of tokens of each passage's title and text together."""

    @property
    def device(self) -> torch.device:
        return self.tokens.device

    def encoder_sequences(self, rows: Tensor, limit: int = ENCODER_TOKENS) -> Sequences:
        """Returns `[CLS] title [SEP] text [SEP]`, truncated as by `PassageEncoder`."""
        offsets = torch.zeros_like(rows)
        return self._sequences(rows, True, _ENCODER_TITLE_TOKENS, limit, offsets)

    def reader_sequences(self, rows: Tensor, limit: int, offsets: Tensor) -> Sequences:
        """Returns `title [SEP] text [SEP]` of at most `limit` tokens.

        `offsets` are the numbers of tokens to skip at the beginning of each text.
        """
        return self._sequences(rows, False, READER_TITLE_TOKENS, limit, offsets)

    def plain(self, rows: Tensor) -> Tensor:
        """Returns title and text without special tokens, [rows, tokens], padded by 0."""
        lengths = self.lengths[rows]
        positions = torch.arange(int(lengths.max()), device=self.device)
        found = self.tokens[(self.starts[rows, None] + positions).clamp(max=len(self.tokens) - 1)]
        return torch.where(positions < lengths[:, None], found, 0)

    def _sequences(
        self, rows: Tensor, classified: bool, max_title: int, limit: int, offsets: Tensor
    ) -> Sequences:
        stored = self.titles[rows]
        title, head = stored.clamp(max=max_title), int(classified)
        rest = self.lengths[rows] - stored - offsets
        text = torch.minimum(rest, limit - title - 2 - head).clamp(min=0)
        first = title + head + 1
        total = first + text + 1
        width = -(-int(total.max()) // _MULTIPLE) * _MULTIPLE
        positions = torch.arange(width, device=self.device)[None]
        in_title = positions < first[:, None] - 1
        skipped = torch.where(in_title, -head, (stored + offsets - first)[:, None])
        source = self.starts[rows, None] + positions + skipped
        ids = self.tokens[source.clamp(0, len(self.tokens) - 1)].long()
        ends = (positions == first[:, None] - 1) | (positions == total[:, None] - 1)
        ids = torch.where(ends, self._sep, ids)
        if classified:
            ids[:, 0] = self._cls
        mask = positions < total[:, None]
        return Sequences(torch.where(mask, ids, 0), mask, first, text)


class QuestionTokens:
    """Token ids of a set of questions and their answers on a device."""

    def __init__(
        self, questions: PackedQuestions, special: NDArray[np.int32], device: torch.device
    ) -> None:
        self.tokens = _to_tensor(questions.tokens, device, torch.int32)
        self.starts = _to_tensor(questions.starts, device, torch.int64)
        self.answers = _to_tensor(questions.answers, device, torch.int32)
        self._cls, self._sep = (int(token) for token in special)

    def sequences(self, numbers: Tensor) -> Sequences:
        """Returns `[CLS] question [SEP]`."""
        lengths = self.starts[numbers + 1] - self.starts[numbers]
        width = -(-(int(lengths.max()) + 2) // _MULTIPLE) * _MULTIPLE
        positions = torch.arange(width, device=self.tokens.device)[None]
        source = (self.starts[numbers, None] + positions - 1).clamp(0, len(self.tokens) - 1)
        ids = self.tokens[source].long()
        ids = torch.where(positions == lengths[:, None] + 1, self._sep, ids)
        ids[:, 0] = self._cls
        mask = positions < lengths[:, None] + 2
        return Sequences(torch.where(mask, ids, 0), mask, torch.ones_like(lengths), lengths)


def _to_tensor(array: NDArray[np.generic], device: torch.device, kind: torch.dtype) -> Tensor:
    # PyTorch lacks most operations on unsigned integers
    signed = array.astype(np.int32) if array.dtype == np.uint16 else array
    return torch.from_numpy(signed).to(device, kind)
