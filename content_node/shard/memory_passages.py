"""Passages in memory, row by row, in a few arrays.

Arrays of tokens take a tenth of the memory of Python integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.id_order import IdOrder
from winnow.content_node.shard.store import TOKEN_BYTES
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import Tokens


@dataclass(frozen=True, kw_only=True)
class MemoryPassages:
    """Passages with their tokens, offsets, vectors, and the sequence numbers of their writes."""

    passages: tuple[Passage, ...]
    sequences: tuple[int, ...]
    tokens: NDArray[np.uint32]
    """Tokens of title and text, row after row."""
    title_lengths: NDArray[np.int64]
    """Number of tokens of each title, [rows]."""
    text_lengths: NDArray[np.int64]
    """Number of tokens of each text, [rows]."""
    offsets: NDArray[np.uint32]
    """First character of each text token, and one past its last, [text tokens, 2]."""
    vectors: NDArray[np.float32]
    """[rows, dimension]."""

    @cached_property
    def token_ends(self) -> NDArray[np.int64]:
        """The index in `tokens` after each row's last token, [rows]."""
        return np.cumsum(self.title_lengths + self.text_lengths)

    @cached_property
    def _text_token_ends(self) -> NDArray[np.int64]:
        """The index in `offsets` after each row's last text token, [rows]."""
        return np.cumsum(self.text_lengths)

    @cached_property
    def rows_by_id(self) -> dict[str, list[int]]:
        """The rows of each id, ascending."""
        rows: dict[str, list[int]] = {}
        for row, passage in enumerate(self.passages):
            rows.setdefault(passage.id, []).append(row)
        return rows

    @cached_property
    def id_order(self) -> IdOrder:
        """The rows in the order of their ids."""
        ids = [passage.id.encode() for passage in self.passages]
        rows = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
        return IdOrder(rows, ids.__getitem__)

    @classmethod
    def pack(
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
            title_lengths=_packed_lengths([each.title_tokens for each in passages]),
            text_lengths=_packed_lengths([each.text_tokens for each in passages]),
            offsets=np.frombuffer(offsets, "<u4").astype(np.uint32, copy=False).reshape(-1, 2),
            vectors=np.frombuffer(vectors, "<f4")
            .astype(np.float32, copy=False)
            .reshape(-1, dimension),
        )

    def joined(self, *others: "MemoryPassages") -> "MemoryPassages":
        """Returns the rows of this object and of `others`, in this order."""
        parts = (self, *others)
        return MemoryPassages(
            passages=tuple(chain.from_iterable(part.passages for part in parts)),
            sequences=tuple(chain.from_iterable(part.sequences for part in parts)),
            tokens=np.concatenate([part.tokens for part in parts]),
            title_lengths=np.concatenate([part.title_lengths for part in parts]),
            text_lengths=np.concatenate([part.text_lengths for part in parts]),
            offsets=np.concatenate([part.offsets for part in parts]),
            vectors=np.concatenate([part.vectors for part in parts]),
        )

    def load(self, row: int) -> StoredPassage:
        """Returns the passage of a row with its tokens."""
        text, title = int(self.text_lengths[row]), int(self.title_lengths[row])
        end, text_end = int(self.token_ends[row]), int(self._text_token_ends[row])
        own = self.tokens[end - text - title : end].tolist()
        starts, ends = self.offsets[text_end - text : text_end].T.tolist()
        offsets = tuple(zip(starts, ends, strict=True))
        return StoredPassage(
            self.passages[row], tuple(own[:title]), Tokens(tuple(own[title:]), offsets)
        )


def _packed_lengths(packed: Sequence[bytes]) -> NDArray[np.int64]:
    return np.array([len(tokens) // TOKEN_BYTES for tokens in packed], np.int64)
