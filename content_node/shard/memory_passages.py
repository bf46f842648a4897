"""Passages in memory, row by row, in a few arrays.

As Python's integers their tokens would take ten times the room.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.store import TOKEN_BYTES, StoredPassage
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage
from winnow.text.tokenizer import Tokens


@dataclass(frozen=True, slots=True)
class MemoryPassages:
    """Passages with all that is derived from them, and the write that put each."""

    passages: tuple[Passage, ...]
    sequences: tuple[int, ...]
    tokens: NDArray[np.uint32]
    """Of title and text, of one row after the other."""
    titles: NDArray[np.int64]
    """How many of a row's tokens are those of its title, [rows]."""
    texts: NDArray[np.int64]
    """How many are those of its text, [rows]."""
    offsets: NDArray[np.uint32]
    """First character of each token of a text, and one past its last, [tokens of texts, 2]."""
    vectors: NDArray[np.float32]
    """[rows, dimension]."""

    @property
    def ends(self) -> NDArray[np.int64]:
        """Where the tokens of each row end, [rows]."""
        return np.cumsum(self.titles + self.texts)

    @classmethod
    def of(
        cls, passages: Sequence[EncodedPassage], sequences: Sequence[int], dimension: int
    ) -> "MemoryPassages":
        """Passages in the order of their rows; their vectors have `dimension` values."""
        tokens = b"".join(each.words for each in passages)
        offsets = b"".join(each.text_offsets for each in passages)
        vectors = b"".join(each.vector for each in passages)
        return cls(
            tuple(each.passage for each in passages),
            tuple(sequences),
            np.frombuffer(tokens, "<u4").astype(np.uint32, copy=False),
            np.array([len(each.title_tokens) // TOKEN_BYTES for each in passages], np.int64),
            np.array([len(each.text_tokens) // TOKEN_BYTES for each in passages], np.int64),
            np.frombuffer(offsets, "<u4").astype(np.uint32, copy=False).reshape(-1, 2),
            np.frombuffer(vectors, "<f4").astype(np.float32, copy=False).reshape(-1, dimension),
        )

    def joined(self, *others: "MemoryPassages") -> "MemoryPassages":
        """These rows, then those of the others in their order."""
        parts = (self, *others)
        return MemoryPassages(
            tuple(chain.from_iterable(part.passages for part in parts)),
            tuple(chain.from_iterable(part.sequences for part in parts)),
            np.concatenate([part.tokens for part in parts]),
            np.concatenate([part.titles for part in parts]),
            np.concatenate([part.texts for part in parts]),
            np.concatenate([part.offsets for part in parts]),
            np.concatenate([part.vectors for part in parts]),
        )

    def load(self, row: int, end: int, text_end: int) -> StoredPassage:
        """A passage as the reader needs it.

        Its tokens end at `end` of all, and those of its text at `text_end` of those of all texts.
        """
        text, title = int(self.texts[row]), int(self.titles[row])
        own = self.tokens[end - text - title : end].tolist()
        starts, ends = self.offsets[text_end - text : text_end].T.tolist()
        offsets = tuple(zip(starts, ends, strict=True))
        return StoredPassage(
            self.passages[row], tuple(own[:title]), Tokens(tuple(own[title:]), offsets)
        )
