"""Passages in memory, row by row, in a few arrays.

Python integers would take ten times the memory for their tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.store import TOKEN_BYTES, StoredPassage
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage
from winnow.text.tokenizer import Tokens


@dataclass(frozen=True, kw_only=True)
class MemoryPassages:
    """Passages with their tokens, offsets and vectors, and the write that put each."""

    passages: tuple[Passage, ...]
    sequences: tuple[int, ...]
    tokens: NDArray[np.uint32]
    """Tokens of title and text, one row after the other."""
    titles: NDArray[np.int64]
    """Number of tokens of each title, [rows]."""
    texts: NDArray[np.int64]
    """Number of tokens of each text, [rows]."""
    offsets: NDArray[np.uint32]
    """First character of each token of a text, and one past its last, [tokens of texts, 2]."""
    vectors: NDArray[np.float32]
    """[rows, dimension]."""

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Where the tokens of each row end in `tokens`, [rows]."""
        return np.cumsum(self.titles + self.texts)

    @cached_property
    def _text_ends(self) -> NDArray[np.int64]:
        """Where the tokens of each row's text end in `offsets`, [rows]."""
        return np.cumsum(self.texts)

    @classmethod
    def of(
        cls, passages: Sequence[EncodedPassage], sequences: Sequence[int], dimension: int
    ) -> "MemoryPassages":
        """Packs passages in the order of their rows; their vectors have `dimension` values."""
        tokens = b"".join(each.words for each in passages)
        offsets = b"".join(each.text_offsets for each in passages)
        vectors = b"".join(each.vector for each in passages)
        return cls(
            passages=tuple(each.passage for each in passages),
            sequences=tuple(sequences),
            tokens=np.frombuffer(tokens, "<u4").astype(np.uint32, copy=False),
            titles=np.array([len(each.title_tokens) // TOKEN_BYTES for each in passages], np.int64),
            texts=np.array([len(each.text_tokens) // TOKEN_BYTES for each in passages], np.int64),
            offsets=np.frombuffer(offsets, "<u4").astype(np.uint32, copy=False).reshape(-1, 2),
            vectors=np.frombuffer(vectors, "<f4")
            .astype(np.float32, copy=False)
            .reshape(-1, dimension),
        )

    def joined(self, *others: "MemoryPassages") -> "MemoryPassages":
        """Returns these rows, then those of the others in their order."""
        parts = (self, *others)
        return MemoryPassages(
            passages=tuple(chain.from_iterable(part.passages for part in parts)),
            sequences=tuple(chain.from_iterable(part.sequences for part in parts)),
            tokens=np.concatenate([part.tokens for part in parts]),
            titles=np.concatenate([part.titles for part in parts]),
            texts=np.concatenate([part.texts for part in parts]),
            offsets=np.concatenate([part.offsets for part in parts]),
            vectors=np.concatenate([part.vectors for part in parts]),
        )

    def load(self, row: int) -> StoredPassage:
        """Returns a passage as the reader needs it."""
        text, title = int(self.texts[row]), int(self.titles[row])
        end, text_end = int(self.ends[row]), int(self._text_ends[row])
        own = self.tokens[end - text - title : end].tolist()
        starts, ends = self.offsets[text_end - text : text_end].T.tolist()
        offsets = tuple(zip(starts, ends, strict=True))
        return StoredPassage(
            self.passages[row], tuple(own[:title]), Tokens(tuple(own[title:]), offsets)
        )
