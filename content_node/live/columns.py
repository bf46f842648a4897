"""Logged passages as a segment in memory has them: their bytes are taken as they are. Pure."""

from collections.abc import Sequence

import numpy as np

from winnow.content_node.live.entry import TOKEN_BYTES, Logged
from winnow.content_node.shard.memory_passages import MemoryPassages
from winnow.domain.passage import Passage


def in_memory(writes: Sequence[Logged], dimension: int) -> MemoryPassages:
    """The passages that writes put; their vectors have `dimension` values."""
    puts = [(write, write.put) for write in writes if write.put is not None]
    titles = [len(put.title_tokens) // TOKEN_BYTES for _, put in puts]
    texts = [len(put.text_tokens) // TOKEN_BYTES for _, put in puts]
    tokens = b"".join(put.words for _, put in puts)
    offsets = b"".join(put.text_offsets for _, put in puts)
    vectors = b"".join(put.vector for _, put in puts)
    return MemoryPassages(
        tuple(Passage(each.id, put.title, put.text, put.metadata) for each, put in puts),
        tuple(each.sequence for each, _ in puts),
        np.frombuffer(tokens, "<u4").astype(np.uint32, copy=False),
        np.array(titles, np.int64),
        np.array(texts, np.int64),
        np.frombuffer(offsets, "<u4").astype(np.uint32, copy=False).reshape(-1, 2),
        np.frombuffer(vectors, "<f4").astype(np.float32, copy=False).reshape(-1, dimension),
    )
